// Formats: what the table promises, and values worked out by hand. The bit-for-bit oracle is in tests/python.
#include "formats/format.hpp"

#include <array>
#include <cmath>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::formats {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<std::byte> bytes_of(std::initializer_list<int> values) {
  std::vector<std::byte> bytes;
  for (const int value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

std::vector<float> decode(std::string_view name, const std::vector<std::byte>& bytes) {
  const Format* format = find_format(name);
  if (format == nullptr) return {};
  const auto blocks = std::ssize(bytes) / format->block_bytes;
  std::vector<float> values(static_cast<std::size_t>(blocks * format->block_elements));
  format->decode(bytes.data(), blocks, values.data());
  return values;
}

TEST(FormatTable, HoldsTheFormatsOfTheDesign) {
  std::set<std::string_view> names;
  for (const Format& format : format_table()) names.insert(format.name);
  for (const auto* name : {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_EQ(names.size(), format_table().size()) << "two Formats share a name";
}

TEST(FormatTable, IsFoundByNameAndByGgufType) {
  for (const Format& format : format_table()) {
    EXPECT_EQ(find_format(format.name), &format);
    EXPECT_EQ(find_format_by_gguf_type(format.gguf_type), &format) << format.name;
  }
  EXPECT_EQ(find_format("q4"), nullptr);
  EXPECT_EQ(find_format(""), nullptr);
  EXPECT_EQ(find_format_by_gguf_type(4), nullptr);  // a type that GGUF has withdrawn
  EXPECT_EQ(find_format_by_gguf_type(0xffffffffu), nullptr);
}

TEST(FormatTable, RecordsAreConsistent) {
  for (const Format& format : format_table()) {
    SCOPED_TRACE(format.name);
    EXPECT_NE(format.decode, nullptr);
    EXPECT_GT(format.block_bytes, 0);
    EXPECT_EQ(format.block_elements % format.group_elements, 0);
    if (format.kind == Format::Kind::floating) {
      EXPECT_EQ(format.block_elements, 1);
      EXPECT_EQ(format.code_bits, 8 * format.block_bytes);
      EXPECT_EQ(format.decode_codes, nullptr);
    } else {
      EXPECT_NE(format.decode_codes, nullptr);
      EXPECT_LE(format.code_bits, 8);
      EXPECT_TRUE(!format.has_minimum || format.code_offset == 0);
    }
    EXPECT_EQ(format.row_bytes(3 * format.block_elements), 3 * format.block_bytes);
  }
}

TEST(FormatTable, CodesStayBelowTheirBits) {
  for (const Format& format : format_table()) {
    if (format.kind != Format::Kind::grouped) continue;
    SCOPED_TRACE(format.name);
    const std::vector<std::byte> block(static_cast<std::size_t>(format.block_bytes), std::byte{0xff});
    std::vector<std::uint8_t> codes(static_cast<std::size_t>(format.block_elements));
    std::vector<float> scales(codes.size());
    std::vector<float> minimums(codes.size());
    format.decode_codes(block.data(), codes.data(), scales.data(), minimums.data());
    EXPECT_THAT(codes, Each(testing::Lt(1 << format.code_bits)));
  }
}

TEST(Format, Floats) {
  EXPECT_THAT(decode("f32", bytes_of({0, 0, 0xc0, 0x3f, 0, 0, 0, 0x80})), ElementsAre(1.5f, -0.0f));
  EXPECT_THAT(decode("f16", bytes_of({0x00, 0x3e, 0x01, 0x00})), ElementsAre(1.5f, 0x1p-24f));
  EXPECT_THAT(decode("bf16", bytes_of({0xc0, 0x3f, 0x80, 0xff})), ElementsAre(1.5f, -INFINITY));
}

/// `head`, then `count` bytes 0x10, 0x32, 0x54 ...: low nibbles 0 2 4 .. 14 0 .., high nibbles 1 3 5 .. 15 1 ..
std::vector<std::byte> with_nibbles(std::initializer_list<int> head) {
  auto bytes = bytes_of(head);
  for (int i = 0; i < 16; ++i) bytes.push_back(static_cast<std::byte>((2 * i % 16) | (2 * i % 16 + 1) << 4));
  return bytes;
}

TEST(Format, Q4_0IsScaleTimesCodeLess8) {
  const auto values = decode("q4_0", with_nibbles({0x00, 0x38}));  // scale 0.5
  ASSERT_EQ(values.size(), 32u);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(values[i], 0.5f * (static_cast<float>(2 * i % 16) - 8));
    EXPECT_EQ(values[16 + i], 0.5f * (static_cast<float>(2 * i % 16) + 1 - 8));
  }
}

TEST(Format, Q4_1IsScaleTimesCodePlusMinimum) {
  const auto values = decode("q4_1", with_nibbles({0x00, 0x38, 0x00, 0xc0}));  // scale 0.5, minimum -2
  ASSERT_EQ(values.size(), 32u);
  EXPECT_EQ(values[0], -2.0f);
  EXPECT_EQ(values[7], 0.5f * 14 - 2);
  EXPECT_EQ(values[16], 0.5f * 1 - 2);
  EXPECT_EQ(values[23], 0.5f * 15 - 2);
}

TEST(Format, Q5TakesItsFifthBitsInOrder) {
  // Fifth bits of elements 0, 17 and 31.
  const auto q5_0 = decode("q5_0", with_nibbles({0x00, 0x38, 0x01, 0x00, 0x02, 0x80}));
  ASSERT_EQ(q5_0.size(), 32u);
  EXPECT_EQ(q5_0[0], 0.5f * (0 + 16 - 16));
  EXPECT_EQ(q5_0[1], 0.5f * (2 - 16));
  EXPECT_EQ(q5_0[16], 0.5f * (1 - 16));
  EXPECT_EQ(q5_0[17], 0.5f * (3 + 16 - 16));
  EXPECT_EQ(q5_0[31], 0.5f * (15 + 16 - 16));
  const auto q5_1 = decode("q5_1", with_nibbles({0x00, 0x38, 0x00, 0xc0, 0x01, 0x00, 0x02, 0x80}));
  ASSERT_EQ(q5_1.size(), 32u);
  EXPECT_EQ(q5_1[0], 0.5f * 16 - 2);
  EXPECT_EQ(q5_1[1], 0.5f * 2 - 2);
  EXPECT_EQ(q5_1[31], 0.5f * 31 - 2);
}

TEST(Format, Q8_0CodesAreSigned) {
  std::vector<std::byte> bytes = bytes_of({0x00, 0xb8, 0x7f, 0x80, 0xff});  // scale -0.5
  bytes.resize(34);
  const auto values = decode("q8_0", bytes);
  EXPECT_EQ(values[0], -63.5f);
  EXPECT_EQ(values[1], 64.0f);
  EXPECT_EQ(values[2], 0.5f);
  EXPECT_TRUE(std::signbit(values[3])) << "-0.5 * 0 is -0";
}

}  // namespace
}  // namespace headrace::formats
