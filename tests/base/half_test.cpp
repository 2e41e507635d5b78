// f16 and bf16 against the compiler's own types, over every 16-bit pattern and a sweep of f32 patterns.
#include "base/half.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

namespace headrace {
namespace {

float widen_f16(std::uint16_t bits) {
  _Float16 value{};
  std::memcpy(&value, &bits, sizeof value);
  return static_cast<float>(value);
}

std::uint16_t narrow_f16(float value) {
  const auto narrowed = static_cast<_Float16>(value);
  std::uint16_t bits = 0;
  std::memcpy(&bits, &narrowed, sizeof bits);
  return bits;
}

TEST(Half, WidensEveryPatternAsTheCompilerDoes) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(f16_to_f32(half)), std::bit_cast<std::uint32_t>(widen_f16(half))) << bits;
    const float value = f16_to_f32(half);
    if (!std::isnan(value)) {
      EXPECT_EQ(f32_to_f16(value), half);
    }
  }
}

TEST(Half, NarrowsAsTheCompilerDoes) {
  for (std::uint64_t bits = 0; bits < 0x100000000ull; bits += 997) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value))));
    } else {
      EXPECT_EQ(f32_to_f16(value), narrow_f16(value)) << bits;
    }
  }
}

TEST(Half, Bf16RoundsTiesToEven) {
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x7f7fffffu)), 0x7f80);
}

}  // namespace
}  // namespace headrace
