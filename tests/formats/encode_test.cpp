// Encoders: what holds for every Format, and that the search finds the same codes whatever the CPU. The oracles (PyPI
// gguf, and ggml's errors) are in tests/python.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/encode_factored.hpp"
#include "formats/format.hpp"

namespace headrace::formats {
namespace {

constexpr std::int64_t elements = 4096;  // whole blocks of every Format

std::vector<float> gaussian(unsigned seed, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> numbers(elements);
  for (float& number : numbers) number = normal(random);
  return numbers;
}

std::vector<std::byte> encode(const Format& format, const std::vector<float>& numbers) {
  const std::int64_t blocks = std::ssize(numbers) / format.block_elements;
  std::vector<std::byte> bytes(static_cast<std::size_t>(blocks * format.block_bytes));
  format.encode(numbers.data(), blocks, bytes.data());
  return bytes;
}

std::vector<float> decode(const Format& format, const std::vector<std::byte>& bytes) {
  const std::int64_t blocks = std::ssize(bytes) / format.block_bytes;
  std::vector<float> numbers(static_cast<std::size_t>(blocks * format.block_elements));
  format.decode(bytes.data(), blocks, numbers.data());
  return numbers;
}

double relative_error(const std::vector<float>& found, const std::vector<float>& wanted) {
  double error = 0;
  double sum = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    error += std::pow(static_cast<double>(found[i]) - static_cast<double>(wanted[i]), 2);
    sum += std::pow(static_cast<double>(wanted[i]), 2);
  }
  return std::sqrt(error / sum);
}

class EveryFormat : public ::testing::TestWithParam<Format> {};
INSTANTIATE_TEST_SUITE_P(Encode, EveryFormat, ::testing::ValuesIn(format_table().begin(), format_table().end()),
                         [](const auto& test) { return std::string(test.param.name); });

/// Uniform steps of 2^bits levels over about 3 deviations on both sides give about 6 / 2^bits / sqrt(12); the bound
/// leaves half as much again for shared scales.
TEST_P(EveryFormat, IsNearItsNumbers) {
  const Format& format = GetParam();
  const double bound = format.kind == Format::Kind::floating
                           ? std::pow(2.0, format.name == "bf16" ? -8 : -11)
                           : 1.5 * 6 / std::pow(2.0, format.code_bits) / std::sqrt(12.0);
  for (const float deviation : {1.0f, 1e-2f, 1e2f}) {
    const auto numbers = gaussian(1, deviation);
    EXPECT_LE(relative_error(decode(format, encode(format, numbers)), numbers), bound) << deviation;
  }
}

TEST_P(EveryFormat, ZerosStay) {
  const Format& format = GetParam();
  for (const float zero : {0.0f, -0.0f}) {
    const auto values = decode(format, encode(format, std::vector<float>(elements, zero)));
    EXPECT_THAT(values, ::testing::Each(0.0f));
  }
}

TEST_P(EveryFormat, BlocksAreIndependentAndNothingElseIsWritten) {
  const Format& format = GetParam();
  auto numbers = gaussian(2);
  const auto all = encode(format, numbers);
  const auto size = static_cast<std::size_t>(format.block_bytes);
  std::vector<std::byte> one(size + 2, std::byte{0x5a});
  for (std::int64_t b = 0; b < elements / format.block_elements; ++b) {
    format.encode(numbers.data() + b * format.block_elements, 1, one.data() + 1);
    ASSERT_EQ(std::memcmp(one.data() + 1, all.data() + b * format.block_bytes, size), 0) << b;
  }
  EXPECT_EQ(one.front(), std::byte{0x5a});
  EXPECT_EQ(one.back(), std::byte{0x5a});
}

/// Numbers that a Format can hold are there to be found: encoding them again loses much less than the first time.
TEST_P(EveryFormat, NumbersOfTheFormatAreFoundAgain) {
  const Format& format = GetParam();
  const auto numbers = gaussian(3);
  const auto once = decode(format, encode(format, numbers));
  const auto twice = decode(format, encode(format, once));
  EXPECT_LE(relative_error(twice, once), 0.35 * relative_error(once, numbers) + 1e-7);
}

TEST_P(EveryFormat, TakesWhatNoBlockHolds) {
  const Format& format = GetParam();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const auto clean = encode(format, gaussian(4));
  const std::size_t last = clean.size() - static_cast<std::size_t>(format.block_bytes);
  for (const float bad : {nan, -nan, infinity, -infinity, 3.4e38f, -3.4e38f, 1e-45f, -1e-45f, 1e-30f}) {
    for (const std::size_t step : {1u, 2u, 17u}) {
      auto numbers = gaussian(4);
      for (std::size_t i = 0; i < elements - 256; i += step) numbers[i] = i % 3 == 0 ? bad : -bad;
      const auto bytes = encode(format, numbers);
      EXPECT_EQ(std::memcmp(bytes.data() + last, clean.data() + last, clean.size() - last), 0);
    }
  }
}

/// Scales near the least f16s have coarse steps, and the largest f16 ends them.
TEST_P(EveryFormat, TinyAndLargeNumbersAreNoWorseThanZeros) {
  const Format& format = GetParam();
  for (const float deviation : {1e-3f, 1e-5f, 1e-6f, 1e-7f, 1e-8f, 1e-9f, 1e4f}) {
    const auto numbers = gaussian(5, deviation);
    EXPECT_LE(relative_error(decode(format, encode(format, numbers)), numbers),
              format.name.starts_with("q4_") || format.name.starts_with("q5_") ? 2.5 : 1.0 + 1e-6)
        << deviation;
  }
}

/// The search in this file is built for the least CPU, the one behind Format::encode for this one.
TEST(EncodeSearch, FindsTheSameCodesOnEveryCpu) {
  const auto numbers = gaussian(6);
  float levels[256];
  std::uint8_t codes[256];
  float scales[16];
  float minimums[16];
  const Format& q6_k = *find_format("q6_k");
  const Format& q5_k = *find_format("q5_k");
  const auto q6 = encode(q6_k, numbers);
  const auto q5 = encode(q5_k, numbers);
  for (std::size_t b = 0; b < elements / 256; ++b) {
    const float* in = numbers.data() + 256 * b;
    const auto found = search_factored<16, 16, UniformLevels<-32, 31>, UniformLevels<-128, 127>>(
        in, {.first = 0.94f, .step = 0.02f, .count = 6}, levels);
    q6_k.decode_codes(q6.data() + b * 210, codes, scales, minimums);
    for (int g = 0; g < 16; ++g) ASSERT_EQ(scales[g], found.scale * found.factors[g]);
    for (int i = 0; i < 256; ++i) ASSERT_EQ(static_cast<float>(codes[i]) - 32, levels[i]);
    const auto affine = search_factored_affine<8, 32, UniformLevels<0, 31>, UniformLevels<0, 63>>(
        in, {.first = -0.3f, .step = 0.3f, .count = 4, .rounds = 2}, levels);
    q5_k.decode_codes(q5.data() + b * 176, codes, scales, minimums);
    for (int g = 0; g < 8; ++g) ASSERT_EQ(scales[g], affine.scale * affine.scale_factors[g]);
    for (int g = 0; g < 8; ++g) ASSERT_EQ(minimums[g], affine.minimum * affine.minimum_factors[g]);
    for (int i = 0; i < 256; ++i) ASSERT_EQ(static_cast<float>(codes[i]), levels[i]);
  }
}

}  // namespace
}  // namespace headrace::formats
