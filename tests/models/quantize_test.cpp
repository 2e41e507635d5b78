// Quantizing a file: the same bytes whatever the threads, errors as computed here, and faults that leave no file.
#include "models/quantize.hpp"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <sstream>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "formats/gguf_builder.hpp"
#include "formats/gguf_writer.hpp"

namespace headrace::models {
namespace {

namespace fs = std::filesystem;
using formats::find_format;
using formats::Gguf;
using formats::testing::GgufBuilder;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class QuantizeTest : public ::testing::Test {
 protected:
  QuantizeTest() {
    std::string name = fs::temp_directory_path() / "headrace-quantize-XXXXXX";
    folder = ::mkdtemp(name.data());
    in = folder / "in.gguf";
    out = folder / "out.gguf";
  }
  ~QuantizeTest() override { fs::remove_all(folder); }

  std::optional<QuantizeReport> quantize_to(std::string_view recipe, int threads = 1,
                                            std::function<bool(std::uint64_t, std::uint64_t)> progress = {}) {
    ContextOptions options;
    options.threads = threads;
    options.log_out = &log;
    const auto context = Context::create(options);
    const File file(in);
    const Gguf gguf = Gguf::read(file);
    return quantize(file, gguf, out, {.recipe = find_recipe(recipe), .progress = std::move(progress)}, *context);
  }
  /// Of the file that was written.
  [[nodiscard]] std::vector<float> numbers_of(const std::string& name) const {
    const File file(out);
    const Gguf gguf = Gguf::read(file);
    const formats::GgufTensor& tensor = gguf.tensor(name);
    std::vector<std::byte> bytes(*tensor.bytes);
    file.read(tensor.offset, bytes);
    std::vector<float> numbers(static_cast<std::size_t>(tensor.elements));
    tensor.format->decode(bytes.data(), tensor.elements / tensor.format->block_elements, numbers.data());
    return numbers;
  }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  }

  fs::path folder;
  std::string in;
  std::string out;
  std::ostringstream log;
};

std::vector<float> gaussian(std::size_t count, unsigned seed = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(count);
  for (float& number : numbers) number = normal(random);
  return numbers;
}

/// More than a chunk of numbers, so that chunks and pieces meet inside a tensor.
constexpr std::uint64_t rows = 16640;

TEST_F(QuantizeTest, ReportsTheErrorOfEachTensor) {
  const auto numbers = gaussian(rows * 256);
  const auto norm = gaussian(256);
  GgufBuilder()
      .add("general.architecture", "made")
      .add("general.file_type", std::uint32_t{0})
      .add("quantize.imatrix.file", "old")
      .add("kept", std::vector<std::string>{"a", "b"})
      .tensor_f32("blk.0.ffn_up.weight", {256, rows}, numbers)
      .tensor_f32("blk.0.ffn_norm.weight", {256}, norm)
      .write(in);
  for (const auto* recipe : {"q8_0", "q6_k"}) {
    const auto report = quantize_to(recipe, 2);
    ASSERT_TRUE(report);
    ASSERT_EQ(report->tensors.size(), 2u);
    const auto found = numbers_of("blk.0.ffn_up.weight");
    double squared = 0;
    double squares = 0;
    double largest = 0;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const double error = static_cast<double>(found[i]) - static_cast<double>(numbers[i]);
      squared += error * error;
      squares += std::pow(static_cast<double>(numbers[i]), 2);
      largest = std::max(largest, std::fabs(error));
    }
    const QuantizedTensor& up = report->tensors[0];
    EXPECT_EQ(up.to->name, recipe);
    ASSERT_TRUE(up.error);
    // Sums of 4 million doubles in two orders.
    EXPECT_NEAR(up.error->relative_rms, std::sqrt(squared / squares), 1e-10);
    EXPECT_EQ(up.error->max, largest);
    EXPECT_GT(up.error->relative_rms, 1e-3);
    EXPECT_FALSE(report->tensors[1].error);
    EXPECT_EQ(numbers_of("blk.0.ffn_norm.weight"), norm);
    EXPECT_EQ(report->in_bytes, fs::file_size(in));
    EXPECT_EQ(report->out_bytes, fs::file_size(out));
    const Gguf gguf = Gguf::read(File(out));
    EXPECT_EQ(gguf.u64("general.file_type"), find_recipe(recipe)->file_type);
    EXPECT_EQ(gguf.u64("general.quantization_version"), 2u);
    EXPECT_EQ(gguf.strings("kept")[1], "b");
    EXPECT_FALSE(gguf.has("quantize.imatrix.file"));
  }
}

TEST_F(QuantizeTest, GivesTheSameBytesForAnyNumberOfThreads) {
  GgufBuilder().tensor_f32("t.weight", {256, rows}, gaussian(rows * 256)).write(in);
  const auto one = quantize_to("q4_k_m", 1);
  const std::string bytes = read_text(out, std::uint64_t{1} << 30);
  const auto two = quantize_to("q4_k_m", 2);
  EXPECT_EQ(read_text(out, std::uint64_t{1} << 30), bytes);
  EXPECT_EQ(one->tensors[0].error->relative_rms, two->tensors[0].error->relative_rms);
}

TEST_F(QuantizeTest, CopiesWhatHasItsFormatAlready) {
  GgufBuilder().tensor_f32("t.weight", {256, rows}, gaussian(rows * 256)).write(in);
  ASSERT_TRUE(quantize_to("q8_0"));
  const std::string once = read_text(out, std::uint64_t{1} << 30);
  fs::rename(out, in);
  const auto report = quantize_to("q8_0");
  EXPECT_FALSE(report->tensors[0].error);
  EXPECT_EQ(read_text(out, std::uint64_t{1} << 30), once);
  EXPECT_EQ(log.str(), "");
}

TEST_F(QuantizeTest, WarnsOfNumbersThatLostBitsBefore) {
  GgufBuilder().tensor_f32("t.weight", {256, 4}, gaussian(1024)).write(in);
  ASSERT_TRUE(quantize_to("q4_1"));
  fs::rename(out, in);
  ASSERT_TRUE(quantize_to("f16"));
  EXPECT_EQ(log.str(), "");
  ASSERT_TRUE(quantize_to("q8_0"));
  EXPECT_THAT(log.str(), HasSubstr("its tensors are q4_1 already"));
}

TEST_F(QuantizeTest, RefusesNumbersThatCannotBeEncoded) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  struct Case {
    float number;
    const char* recipe;
    const char* message;
  };
  // Far inside: in the second chunk.
  const std::size_t element = 4200000;
  auto numbers = gaussian(rows * 256);
  for (const Case& bad : {Case{std::nanf(""), "q8_0", "expected a finite number, found nan"},
                          Case{-infinity, "f16", "expected a finite number, found -inf"},
                          Case{1e9f, "q8_0", "that q8_0 can hold, found 1e+09"},
                          Case{1e6f, "f16", "that f16 can hold, found 1e+06, which would become inf"},
                          Case{-1e12f, "q4_k_m", "that q4_k can hold, found -1e+12"},
                          Case{1e12f, "q6_k", "that q6_k can hold, found 1e+12"}}) {
    numbers[element] = bad.number;
    GgufBuilder().tensor_f32("t.weight", {256, rows}, numbers).write(in);
    EXPECT_THAT([&] { quantize_to(bad.recipe, 2); },
                ThrowsMessage<InputError>(::testing::AllOf(
                    HasSubstr("in.gguf: tensor 't.weight': element 4200000: expected"), HasSubstr(bad.message))));
    EXPECT_EQ(files(), 1) << "only the input";
  }
  // Large, but within reach.
  numbers = gaussian(1024);
  numbers[7] = 1e6f;
  GgufBuilder().tensor_f32("t.weight", {256, 4}, numbers).write(in);
  EXPECT_TRUE(quantize_to("q8_0"));
  EXPECT_TRUE(quantize_to("q4_k_m"));
}

TEST_F(QuantizeTest, CanBeEnded) {
  GgufBuilder().tensor_f32("t.weight", {256, rows}, gaussian(rows * 256)).write(in);
  std::uint64_t seen = 0;
  EXPECT_FALSE(quantize_to("q8_0", 2, [&](std::uint64_t done, std::uint64_t total) {
    EXPECT_EQ(total, rows * 1024);
    seen = done;
    return false;
  }));
  EXPECT_GT(seen, 0u);
  EXPECT_LT(seen, rows * 1024);
  EXPECT_EQ(files(), 1);
}

TEST_F(QuantizeTest, RefusesAPartOfAModel) {
  GgufBuilder().add("split.count", std::uint16_t{3}).tensor_f32("t.weight", {256}, gaussian(256)).write(in);
  EXPECT_THAT([&] { quantize_to("q8_0"); }, ThrowsMessage<InputError>(HasSubstr("found one of 3 parts")));
}

TEST_F(QuantizeTest, RefusesFormatsThatItDoesNotKnow) {
  GgufBuilder().tensor("t.weight", {256}, 16, std::string(66, 'x')).write(in);  // iq2_xxs
  EXPECT_THAT([&] { quantize_to("q8_0"); }, ThrowsMessage<InputError>(HasSubstr("iq2_xxs (GGUF type 16)")));
  EXPECT_EQ(files(), 1);
}

}  // namespace
}  // namespace headrace::models
