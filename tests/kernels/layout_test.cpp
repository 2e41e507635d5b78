// Packing and gathering: every Format's rows come back from the packed Layout bit for bit as the Format decodes them.
#include <array>

#include "kernels/common.hpp"

namespace headrace::kernels {
namespace {

using formats::Format;

class LayoutTest : public IsaTest {};

TEST_P(LayoutTest, GatherGivesWhatTheFormatDecodes) {
  std::mt19937 random(1);
  int formats_seen = 0;
  for (const Format& format : formats::format_table()) {
    const auto layout = layout_of(format);
    if (!layout) continue;
    ++formats_seen;
    for (const std::int64_t outputs : {1, 16, 17, 50}) {
      for (std::int64_t inputs : {32, 96, 544}) {
        if (!layout->grouped()) inputs += 5;
        if (format.block_elements == 256) inputs = inputs / 32 % 4 * 256;  // 1, 3, 1 blocks
        SCOPED_TRACE(testing::Message() << format.name << " " << outputs << " x " << inputs);
        const auto rows = random_weight(format, outputs, inputs, random);
        const Bytes packed = pack(format, *layout, rows, outputs, inputs);
        std::vector<std::int32_t> ids;
        for (std::int64_t i = 0; i < outputs; ++i) ids.push_back(static_cast<std::int32_t>(outputs - 1 - i));
        std::vector<float> out(static_cast<std::size_t>(outputs * inputs));
        table().gather_rows(*layout, packed.data(), inputs, ids.data(), outputs, out.data(), inputs);
        std::vector<float> expected(out.size());
        for (std::int64_t i = 0; i < outputs; ++i) {
          format.decode(rows.data() + ids[static_cast<std::size_t>(i)] * format.row_bytes(inputs),
                        inputs / format.block_elements, expected.data() + i * inputs);
        }
        EXPECT_TRUE(same_bits(out, expected));
      }
    }
  }
  EXPECT_EQ(formats_seen, std::ssize(formats::format_table()));
}

/// By every ISA, whole and panel by panel, the bytes of portable code; rows of whole lines, and rows that end within.
TEST_P(LayoutTest, PackingGivesTheSameBytes) {
  std::mt19937 random(2);
  for (const Format& format : formats::format_table()) {
    const Layout layout = *layout_of(format);
    for (const std::int64_t outputs : {3, 16, 53}) {
      for (std::int64_t inputs : {32, 64, 96, 160, 288, 544}) {
        if (format.block_elements == 256) inputs *= 8;
        if (format.block_elements == 1) inputs += static_cast<std::int64_t>(random() % 16);
        SCOPED_TRACE(testing::Message() << format.name << " " << outputs << " x " << inputs);
        const auto rows = random_weight(format, outputs, inputs, random);
        const std::int64_t bytes = packed_bytes(layout, outputs, inputs);
        const Bytes expected = pack(format, layout, rows, outputs, inputs);
        const Bytes whole(bytes);
        const Bytes parts(bytes);
        table().pack_panels(format, layout, rows.data(), outputs, inputs, 0, panel_count(outputs), whole.data());
        for (std::int64_t p = 0; p < panel_count(outputs); ++p) {
          table().pack_panels(format, layout, rows.data() + p * panel_outputs * format.row_bytes(inputs), outputs,
                              inputs, p, p + 1, parts.data() + p * layout.panel_bytes(inputs));
        }
        ASSERT_EQ(std::memcmp(whole.data(), expected.data(), static_cast<std::size_t>(bytes)), 0);
        ASSERT_EQ(std::memcmp(parts.data(), expected.data(), static_cast<std::size_t>(bytes)), 0);
      }
    }
  }
}

/// The byte order that docs/layout.md promises, on one group whose codes count up.
TEST(Layout, ByteOrderOfNibbles) {
  const Format* format = formats::find_format("q4_0");
  ASSERT_NE(format, nullptr);
  std::array<std::byte, 18 * 16> rows{};
  for (std::size_t o = 0; o < 16; ++o) {
    const std::uint16_t one = f32_to_f16(static_cast<float>(o + 1));
    std::memcpy(&rows[18 * o], &one, 2);
    for (std::size_t i = 0; i < 16; ++i) {  // element i = (i + o) % 16, element i + 16 = (i + o + 3) % 16
      rows[18 * o + 2 + i] = static_cast<std::byte>((i + o) % 16 | ((i + o + 3) % 16) << 4);
    }
  }
  const auto layout = layout_of(*format);
  ASSERT_TRUE(layout);
  EXPECT_EQ(layout->panel_bytes(32), 320);  // 256 + 32, to a multiple of 64
  const Bytes packed(320);
  kernel_table(Isa::portable).pack_panels(*format, *layout, rows.data(), 16, 32, 0, 1, packed.data());
  for (std::size_t k = 0; k < 32; ++k) {
    for (std::size_t o = 0; o < 16; ++o) {
      const std::size_t line = k / 8;
      const auto byte = std::to_integer<unsigned>(packed.data()[64 * line + 4 * o + k % 4]);
      const unsigned code = k / 4 % 2 == 0 ? byte & 0xf : byte >> 4;
      EXPECT_EQ(code, k < 16 ? (k + o) % 16 : (k - 16 + o + 3) % 16) << k << " " << o;
    }
  }
  for (std::size_t o = 0; o < 16; ++o) {
    std::uint16_t half = 0;
    std::memcpy(&half, packed.data() + 256 + 2 * o, 2);
    EXPECT_EQ(f16_to_f32(half), static_cast<float>(o + 1));
  }
}

/// Code k of output o of a panel of one span, put together as docs/layout.md says.
unsigned code_at(const Layout& layout, const std::byte* codes, std::int64_t k, std::int64_t o) {
  const std::byte* unit = codes + k / 32 * 64 * layout.code_bits;
  const std::int64_t j = k % 32 / 4;
  const auto bits = [&](std::int64_t line, std::int64_t from, std::int64_t count) {
    const auto byte = std::to_integer<unsigned>(unit[64 * line + 4 * o + k % 4]);
    return (byte >> from) & ((1U << count) - 1);
  };
  switch (layout.code_bits) {
    case 2:
      return bits(j / 4, 2 * (j % 4), 2);
    case 3:
      return j < 6 ? bits(j / 2, 3 * (j % 2), 3) : bits(j - 6, 6, 2) | bits(2, j, 1) << 2;
    case 4:
      return bits(j / 2, 4 * (j % 2), 4);
    case 5:
      return j < 5    ? bits(j, 0, 5)
             : j == 5 ? bits(0, 5, 3) | bits(1, 5, 2) << 3
             : j == 6 ? bits(2, 5, 3) | bits(3, 5, 2) << 3
                      : bits(4, 5, 3) | bits(1, 7, 1) << 3 | bits(3, 7, 1) << 4;
    case 6:
      return j < 6    ? bits(j, 0, 6)
             : j == 6 ? bits(0, 6, 2) | bits(1, 6, 2) << 2 | bits(2, 6, 2) << 4
                      : bits(3, 6, 2) | bits(4, 6, 2) << 2 | bits(5, 6, 2) << 4;
    default:
      return bits(j, 0, 8);
  }
}

/// Codes and scales of every grouped Format, where docs/layout.md says that they stand.
TEST(Layout, ByteOrderOfEveryGroupedFormat) {
  std::mt19937 random(7);
  for (const Format& format : formats::format_table()) {
    if (format.kind != Format::Kind::grouped) continue;
    SCOPED_TRACE(format.name);
    const Layout layout = *layout_of(format);
    const std::int64_t inputs = format.block_elements;
    const auto rows = random_weight(format, 16, inputs, random);
    const Bytes packed = pack(format, layout, rows, 16, inputs);
    const std::int64_t groups = inputs / format.group_elements;
    const std::byte* codes = packed.data() + (format.factor_bits > 0 ? layout.scale_bytes() : 0);
    const std::byte* scales = packed.data() + (format.factor_bits > 0 ? 0 : layout.unit_bytes());
    for (std::int64_t o = 0; o < 16; ++o) {
      formats::UnpackedBlocks unpacked;
      format.unpack(rows.data() + o * format.block_bytes, 1, unpacked);
      for (std::int64_t k = 0; k < inputs; ++k) ASSERT_EQ(code_at(layout, codes, k, o), unpacked.codes[k]) << k;
      if (layout.scales == Layout::Scales::e8m0) {
        EXPECT_EQ(std::to_integer<unsigned>(scales[o]), unpacked.scales[0]);
        continue;
      }
      std::uint16_t half = 0;
      std::memcpy(&half, scales + 2 * o, 2);
      EXPECT_EQ(half, unpacked.scales[0]);
      const std::byte* factors = scales + 32;
      if (format.has_minimum) {
        std::memcpy(&half, factors + 2 * o, 2);
        EXPECT_EQ(half, unpacked.minimums[0]);
        factors += 32;
      }
      for (std::int64_t g = 0; g < groups && format.factor_bits > 0; ++g) {
        if (layout.scales == Layout::Scales::nibbles) {
          const auto both = std::to_integer<int>(factors[16 * g + o]);
          EXPECT_EQ(both & 15, unpacked.scale_factors[g]);
          EXPECT_EQ(both >> 4, unpacked.minimum_factors[g]);
          continue;
        }
        const std::int64_t sides = format.has_minimum ? 2 : 1;
        EXPECT_EQ(std::to_integer<std::int8_t>(factors[16 * sides * g + o]), unpacked.scale_factors[g]);
        if (format.has_minimum) {
          EXPECT_EQ(std::to_integer<std::int8_t>(factors[16 * sides * g + 16 + o]), unpacked.minimum_factors[g]);
        }
      }
    }
  }
}

/// Decode is bound by packed bytes, so they are hardly more than the file's.
TEST(Layout, PackedBytesAreNearTheFilesOwn) {
  for (const Format& format : formats::format_table()) {
    const Layout layout = *layout_of(format);
    const double packed = static_cast<double>(packed_bytes(layout, 2048, 2048));
    const double file = 2048.0 * static_cast<double>(format.row_bytes(2048));
    EXPECT_LE(packed, 1.037 * file) << format.name;
    EXPECT_GE(packed, file) << format.name;
  }
}

TEST(Layout, RefusesWhatItCannotHold) {
  Format format = *formats::find_format("q8_0");
  format.group_elements = 16;
  EXPECT_FALSE(layout_of(format));
  format = *formats::find_format("f32");
  format.name = "f64";
  EXPECT_FALSE(layout_of(format));
}

HEADRACE_TEST_EVERY_ISA(LayoutTest);

}  // namespace
}  // namespace headrace::kernels
