// GgufWriter: what it writes, our reader gives back; what no reader would take, it refuses. PyPI gguf reads its files
// in tests/python.
#include "formats/gguf_writer.hpp"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "gguf_builder.hpp"

namespace headrace::formats {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using testing::GgufBuilder;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class GgufWriterTest : public ::testing::Test {
 protected:
  GgufWriterTest() {
    std::string name = fs::temp_directory_path() / "headrace-gguf-XXXXXX";
    folder = ::mkdtemp(name.data());
    path = folder / "a.gguf";
  }
  ~GgufWriterTest() override { fs::remove_all(folder); }

  void write(const GgufContents& contents, std::span<const std::byte> data = {}) const {
    GgufWriter writer(path, contents);
    writer.write(data);
    writer.finish();
  }
  [[nodiscard]] Gguf read() const { return Gguf::read(File(path)); }

  fs::path folder;
  std::string path;
};

/// Metadata of all types, as a file has it.
GgufBuilder all_types() {
  GgufBuilder builder;
  builder.add("u8", std::uint8_t{255})
      .add("i8", std::int8_t{-128})
      .add("u16", std::uint16_t{65535})
      .add("i16", std::int16_t{-32768})
      .add("u32", std::uint32_t{4294967295})
      .add("i32", std::numeric_limits<std::int32_t>::min())
      .add("u64", std::numeric_limits<std::uint64_t>::max())
      .add("i64", std::numeric_limits<std::int64_t>::min())
      .add("f32", 0.1f)
      .add("f64", 0.1)
      .add("infinite", -INFINITY)
      .add("yes", true)
      .add("no", false)
      .add("text", "a \u00e9\n text")
      .add("strings", std::vector<std::string>{"a", "", "\u00e9\n"})
      .add("floats", std::vector<float>{1.5f, -INFINITY})
      .add("booleans", std::vector<bool>{true, false, true})
      .add("empty", std::vector<std::uint32_t>{})
      .add("nested", std::vector<std::vector<std::uint16_t>>{{1, 2}, {}, {3}})
      .add("nested strings", std::vector<std::vector<std::string>>{{"x"}, {}});
  return builder;
}

TEST_F(GgufWriterTest, CopiesTheEntriesOfAFileByteForByte) {
  const std::string original = all_types().build();
  const Gguf gguf = Gguf::read(MemorySource("original", std::as_bytes(std::span(original))));
  GgufContents contents;
  contents.entries.assign(gguf.entries().begin(), gguf.entries().end());
  write(contents);
  EXPECT_EQ(read_text(path, 1 << 20), original);
}

TEST_F(GgufWriterTest, MakesEntries) {
  GgufContents contents;
  StringArray strings;
  strings.append("one");
  strings.append("");
  contents.set(gguf_entry("u32", std::uint32_t{7}));
  contents.set(gguf_entry("u64", std::uint64_t{1} << 40));
  contents.set(gguf_entry("f32", 0.1f));
  contents.set(gguf_entry("yes", true));
  contents.set(gguf_entry("text", "words"));
  contents.set(gguf_entry("strings", strings));
  contents.set(gguf_entry("floats", std::span<const float>(std::vector<float>{1, -2.5f})));
  contents.set(gguf_entry("integers", std::span<const std::int32_t>(std::vector<std::int32_t>{-1, 3})));
  contents.set(gguf_entry("gone", true));
  contents.set(gguf_entry("text", "other words"));
  contents.remove("gone");
  contents.remove("never there");
  write(contents);
  const Gguf gguf = read();
  EXPECT_EQ(gguf.version(), 3u);
  EXPECT_EQ(gguf.entries().size(), 8u);
  EXPECT_EQ(gguf.find("u32")->type, GgufType::u32);
  EXPECT_EQ(gguf.u64("u32"), 7u);
  EXPECT_EQ(gguf.u64("u64"), std::uint64_t{1} << 40);
  EXPECT_EQ(gguf.f32("f32"), 0.1f);
  EXPECT_TRUE(gguf.boolean("yes"));
  EXPECT_EQ(gguf.string("text"), "other words");
  EXPECT_EQ(gguf.strings("strings")[0], "one");
  EXPECT_THAT(gguf.floats("floats"), ElementsAre(1, -2.5f));
  EXPECT_THAT(gguf.integers("integers"), ElementsAre(-1, 3));
}

std::vector<std::byte> counting(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
  return bytes;
}

/// 12, 68 and 4 bytes.
GgufContents three_tensors() {
  GgufContents contents;
  contents.tensors = {
      {"a", {3}, find_format("f32")}, {"b", {32, 2}, find_format("q8_0")}, {"c", {}, find_format("f32")}};
  return contents;
}

TEST_F(GgufWriterTest, AlignsTensors) {
  for (const std::uint32_t alignment : {0u, 8u, 32u, 8192u}) {
    SCOPED_TRACE(alignment);
    GgufContents contents = three_tensors();
    if (alignment != 0) contents.set(gguf_entry("general.alignment", alignment));
    write(contents, counting(12 + 68 + 4));
    const Gguf gguf = read();
    const std::string file = read_text(path, 1 << 20);
    EXPECT_EQ(file.size() % gguf.alignment(), 0u);
    EXPECT_EQ(gguf.alignment(), alignment == 0 ? 32 : alignment);
    std::string data;
    for (const auto* name : {"a", "b", "c"}) {
      const GgufTensor& tensor = gguf.tensor(name);
      EXPECT_EQ(tensor.offset % gguf.alignment(), 0u);
      data += file.substr(tensor.offset, *tensor.bytes);
    }
    EXPECT_EQ(gguf.tensor("b").dimensions, (std::vector<std::int64_t>{32, 2}));
    EXPECT_EQ(gguf.tensor("b").format->name, "q8_0");
    EXPECT_TRUE(gguf.tensor("c").dimensions.empty());
    EXPECT_TRUE(std::ranges::equal(std::as_bytes(std::span(data)), counting(12 + 68 + 4)));
  }
}

TEST_F(GgufWriterTest, TakesPiecesThatEndAnywhere) {
  const auto data = counting(12 + 68 + 4);
  write(three_tensors(), data);
  const std::string whole = read_text(path, 1 << 20);
  for (const std::size_t piece : {1u, 5u, 12u, 80u}) {
    GgufWriter writer(path, three_tensors());
    for (std::size_t begin = 0; begin < data.size(); begin += piece) {
      writer.write(std::span(data).subspan(begin, std::min(piece, data.size() - begin)));
    }
    writer.finish();
    EXPECT_EQ(read_text(path, 1 << 20), whole) << piece;
    EXPECT_EQ(writer.file_bytes(), whole.size());
  }
}

TEST_F(GgufWriterTest, KnowsHowManyBytesAreDue) {
  {
    GgufWriter writer(path, three_tensors());
    writer.write(counting(83));
    EXPECT_THROW(writer.finish(), InternalError);
    EXPECT_THROW(writer.write(counting(2)), InternalError);
  }
  EXPECT_TRUE(fs::is_empty(folder)) << "an unfinished file has left something";
}

TEST_F(GgufWriterTest, RefusesWhatNoReaderTakes) {
  const auto refusal = [&](const GgufContents& contents) -> std::string {
    try {
      write(contents);
    } catch (const InputError& error) {
      EXPECT_TRUE(fs::is_empty(folder));
      return error.what();
    }
    return "taken";
  };
  const Format* f32 = find_format("f32");
  GgufContents twice;
  twice.entries = {gguf_entry("k", true), gguf_entry("k", false)};
  EXPECT_THAT(refusal(twice), HasSubstr("metadata 'k': expected each name once"));
  EXPECT_THAT(refusal({{}, {{"t", {1}, f32}, {"t", {1}, f32}}}), HasSubstr("tensor 't': expected each name once"));
  EXPECT_THAT(refusal({{}, {{std::string(65536, 'n'), {1}, f32}}}), HasSubstr("at most 65535 bytes, found 65536"));
  EXPECT_THAT(refusal({{gguf_entry(std::string(65536, 'n'), true)}, {}}), HasSubstr("at most 65535 bytes"));
  EXPECT_THAT(refusal({{gguf_entry("general.alignment", std::uint32_t{24})}, {}}), HasSubstr("a power of two"));
  EXPECT_THAT(refusal({{gguf_entry("general.alignment", std::uint64_t{32})}, {}}), HasSubstr("a u32"));
  EXPECT_THAT(refusal({{}, {{"t", {4, 0}, f32}}}), HasSubstr("dimensions above 0"));
  EXPECT_THAT(refusal({{}, {{"t", {4, -1}, f32}}}), HasSubstr("dimensions above 0"));
  EXPECT_THAT(refusal({{}, {{"t", {std::int64_t{1} << 40, std::int64_t{1} << 40}, f32}}}), HasSubstr("2^63 elements"));
  EXPECT_THAT(refusal({{}, {{"t", {std::int64_t{1} << 62}, f32}}}), HasSubstr("2^63 bytes"));
  EXPECT_THAT(refusal({{}, {{"t", std::vector<std::int64_t>(9, 1), f32}}}), HasSubstr("at most 8 dimensions"));
  EXPECT_THAT(refusal({{}, {{"t", {33}, find_format("q8_0")}}}), HasSubstr("rows of a multiple of 32 elements"));
  const std::int64_t half = std::int64_t{1} << 59;
  EXPECT_THAT(refusal({{}, {{"t", {half}, f32}, {"u", {half}, f32}}}), HasSubstr("2^62 bytes in all"));
}

TEST_F(GgufWriterTest, SaysThatTheDiskIsFull) {
  fs::create_symlink("/dev/full", path);
  EXPECT_THAT([&] { GgufWriter(path, three_tensors()); },
              ThrowsMessage<ResourceError>(HasSubstr("a.gguf: cannot be written: No space left")));
  // More than any disk has.
  const std::string vast = folder / "vast.gguf";
  EXPECT_THAT([&] { GgufWriter(vast, {{}, {{"t", {std::int64_t{1} << 59}, find_format("f32")}}}); },
              ThrowsMessage<ResourceError>(HasSubstr("bytes are needed")));
  EXPECT_FALSE(fs::exists(vast));
}

}  // namespace
}  // namespace headrace::formats
