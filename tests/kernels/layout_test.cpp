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
  EXPECT_GE(formats_seen, 8);
}

TEST(Layout, PackingInPartsGivesTheSameBytes) {
  std::mt19937 random(2);
  for (const Format& format : formats::format_table()) {
    const auto layout = layout_of(format);
    if (!layout) continue;
    const std::int64_t outputs = 53;
    const std::int64_t inputs = 96;
    const auto rows = random_weight(format, outputs, inputs, random);
    const std::int64_t bytes = packed_bytes(*layout, outputs, inputs);
    const Bytes whole = pack(format, *layout, rows, outputs, inputs);
    const Bytes parts(bytes);
    for (std::int64_t p = 0; p < panel_count(outputs); ++p) {
      pack_panels(format, *layout, rows.data() + p * panel_outputs * format.row_bytes(inputs), outputs, inputs, p,
                  p + 1, parts.data() + p * layout->panel_bytes(inputs));
    }
    EXPECT_EQ(std::memcmp(whole.data(), parts.data(), static_cast<std::size_t>(bytes)), 0) << format.name;
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
  pack_panels(*format, *layout, rows.data(), 16, 32, 0, 1, packed.data());
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
