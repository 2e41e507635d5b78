// Formats: what the table promises, and values worked out by hand. The bit-for-bit oracle is in tests/python.
#include "formats/format.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <random>
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
  for (const auto* name : {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q2_k", "q3_k", "q4_k", "q5_k",
                           "q6_k", "iq4_nl", "iq4_xs", "mxfp4"}) {
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
      EXPECT_EQ(format.unpack, nullptr);
    } else {
      EXPECT_NE(format.unpack, nullptr);
      EXPECT_LE(format.code_bits, 8);
      EXPECT_LE(format.block_elements, UnpackedBlocks::max_elements);
      EXPECT_TRUE(format.group_elements == 16 || format.group_elements == 32);
      EXPECT_TRUE(!format.has_minimum || format.code_offset == 0);
      EXPECT_TRUE(format.codebook == nullptr || (format.code_offset == 0 && format.code_bits <= 4));
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

TEST(FormatTable, BlocksAreUnpackedTogetherAsOneByOne) {
  std::mt19937 random(1);
  for (const Format& format : format_table()) {
    if (format.kind != Format::Kind::grouped) continue;
    SCOPED_TRACE(format.name);
    const std::int64_t blocks = UnpackedBlocks::max_elements / format.block_elements;
    std::vector<std::byte> bytes(static_cast<std::size_t>(blocks * format.block_bytes));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 0xff);
    UnpackedBlocks together;
    format.unpack(bytes.data(), blocks, together);
    const std::int64_t groups = format.block_elements / format.group_elements;
    for (std::int64_t b = 0; b < blocks; ++b) {
      UnpackedBlocks alone;
      format.unpack(bytes.data() + b * format.block_bytes, 1, alone);
      for (std::int64_t i = 0; i < format.block_elements; ++i) {
        EXPECT_EQ(together.codes[b * format.block_elements + i], alone.codes[i]);
      }
      EXPECT_EQ(together.scales[b], alone.scales[0]);
      if (format.has_minimum) {
        EXPECT_EQ(together.minimums[b], alone.minimums[0]);
      }
      for (std::int64_t g = 0; g < groups && format.factor_bits > 0; ++g) {
        EXPECT_EQ(together.scale_factors[b * groups + g], alone.scale_factors[g]);
        if (format.has_minimum) {
          EXPECT_EQ(together.minimum_factors[b * groups + g], alone.minimum_factors[g]);
        }
      }
    }
  }
}

/// Blocks can be made up: doubling what stands at scale_at and minimum_at doubles every scale and minimum.
TEST(FormatTable, ScalesStandWhereTheRecordSays) {
  for (const Format& format : format_table()) {
    if (format.kind != Format::Kind::grouped) continue;
    SCOPED_TRACE(format.name);
    const auto scales_of = [&](std::uint16_t half, std::uint8_t exponent) {
      std::vector<std::byte> block(static_cast<std::size_t>(format.block_bytes), std::byte{0x55});
      for (const std::int64_t at : {format.scale_at, format.has_minimum ? format.minimum_at : format.scale_at}) {
        if (format.scales == Format::Scales::e8m0) {
          block[static_cast<std::size_t>(at)] = std::byte{exponent};
        } else {
          std::memcpy(block.data() + at, &half, 2);
        }
      }
      std::vector<std::uint8_t> codes(static_cast<std::size_t>(format.block_elements));
      std::vector<float> values(codes.size() * 2);
      format.decode_codes(block.data(), codes.data(), values.data(), values.data() + codes.size());
      return values;
    };
    const auto one = scales_of(0x3c00, 127);
    const auto two = scales_of(0x4000, 128);
    EXPECT_NE(one[0], 0);
    if (format.has_minimum) {
      EXPECT_NE(one[one.size() / 2], 0);
    }
    for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(two[i], 2 * one[i]) << i;
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

TEST(Format, Q6_KAddsUpperBitsAndTakesSignedFactors) {
  std::vector<std::byte> bytes(210);
  bytes[0] = std::byte{0x21};    // low nibbles of elements 0 and 64
  bytes[128] = std::byte{0x0b};  // upper bits 3, 2, 0, 0 of elements 0, 32, 64, 96
  bytes[192] = std::byte{0xfd};  // -3, factor of elements 0 .. 15
  bytes[194] = std::byte{2};     // of 32 .. 47
  bytes[196] = std::byte{1};     // of 64 .. 79
  bytes[209] = std::byte{0x38};  // scale 0.5
  const auto values = decode("q6_k", bytes);
  ASSERT_EQ(values.size(), 256u);
  EXPECT_EQ(values[0], 0.5f * -3 * (0x31 - 32));
  EXPECT_EQ(values[1], 0.5f * -3 * -32);
  EXPECT_EQ(values[32], 0.5f * 2 * (0x20 - 32));
  EXPECT_EQ(values[64], 0.5f * 1 * (0x02 - 32));
}

TEST(Format, Mxfp4IsE2m1TimesAPowerOfTwo) {
  auto bytes = bytes_of({128});  // 2
  for (int i = 0; i < 16; ++i) bytes.push_back(static_cast<std::byte>(i | (15 - i) << 4));
  const auto values = decode("mxfp4", bytes);
  ASSERT_EQ(values.size(), 32u);
  const float e2m1[16] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, 0, -0.5f, -1, -1.5f, -2, -3, -4, -6};
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(values[i], 2 * e2m1[i]);
    EXPECT_EQ(values[16 + i], 2 * e2m1[15 - i]);
  }
}

}  // namespace
}  // namespace headrace::formats
