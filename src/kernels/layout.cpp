// Packing of a file's rows into panels. Plain code: it runs once a Weight (or once a pass, when streamed), near the
// speed of memory; kernels never see a file's own order.
#include "kernels/layout.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/half.hpp"

namespace headrace::kernels {
namespace {

constexpr std::int64_t max_block = 256;  ///< elements of the largest block that layout_of accepts
constexpr std::int64_t group = 32;       ///< elements of a group
constexpr std::int64_t words = group / 4;

/// Puts the 32 codes of one output's group into the group's lines.
void put_codes(const Layout& layout, const std::uint8_t* codes, std::int64_t output, std::byte* lines) noexcept {
  std::uint32_t word[words];
  std::memcpy(word, codes, sizeof word);
  std::byte* lane = lines + 4 * output;
  if (layout.codes == Layout::Codes::byte) {
    for (std::int64_t j = 0; j < words; ++j) std::memcpy(lane + 64 * j, &word[j], 4);
    return;
  }
  for (std::int64_t l = 0; l < words / 2; ++l) {
    const std::uint32_t low = word[2 * l] & 0x0f0f0f0fu;
    const std::uint32_t high = word[2 * l + 1] & 0x0f0f0f0fu;
    const std::uint32_t both = low | (high << 4);
    std::memcpy(lane + 64 * l, &both, 4);
  }
  if (layout.codes == Layout::Codes::nibble_bit) {
    std::byte* masks = lines + 64 * (words / 2);
    for (std::int64_t j = 0; j < words; ++j) {
      // Gathers bits 4, 12, 20, 28 of the word into four neighbours.
      const std::uint32_t bits = (word[j] >> 4) & 0x01010101u;
      const std::uint32_t nibble = (bits | (bits >> 7) | (bits >> 14) | (bits >> 21)) & 0xfu;
      std::byte& target = masks[8 * j + output / 2];
      const auto shifted = static_cast<std::byte>(nibble << (4 * (output % 2)));
      target = output % 2 == 0 ? shifted : target | shifted;
    }
  }
}

void put_scale(const Layout& layout, float value, std::int64_t index, std::byte* scales) noexcept {
  if (layout.scales_are_f16) {
    const std::uint16_t half = f32_to_f16(value);
    std::memcpy(scales + 2 * index, &half, 2);
  } else {
    std::memcpy(scales + 4 * index, &value, 4);
  }
}

void pack_grouped(const formats::Format& format, const Layout& layout, const std::byte* rows, std::int64_t outputs,
                  std::int64_t inputs, std::byte* panel) noexcept {
  const std::int64_t row_bytes = format.row_bytes(inputs);
  const std::int64_t groups_per_block = format.block_elements / group;
  const std::int64_t code_bytes = layout.code_bytes();
  const std::int64_t group_bytes = layout.group_bytes();
  std::uint8_t codes[max_block];
  float scales[max_block / group];
  float minimums[max_block / group];
  for (std::int64_t block = 0; block < inputs / format.block_elements; ++block) {
    for (std::int64_t o = 0; o < outputs; ++o) {
      format.decode_codes(rows + o * row_bytes + block * format.block_bytes, codes, scales, minimums);
      for (std::int64_t g = 0; g < groups_per_block; ++g) {
        const std::int64_t index = block * groups_per_block + g;
        std::byte* lines = panel + index * group_bytes;
        put_codes(layout, codes + g * group, o, lines);
        std::byte* group_scales = lines + code_bytes;
        put_scale(layout, scales[g], o, group_scales);
        if (layout.has_minimum) put_scale(layout, minimums[g], panel_outputs + o, group_scales);
      }
    }
  }
}

/// Element [o][k] of `width` bytes to [k / pair][o][k % pair].
template <std::int64_t width, std::int64_t pair>
void pack_floating(const std::byte* rows, std::int64_t outputs, std::int64_t inputs, std::byte* panel) noexcept {
  constexpr std::int64_t unroll = 16;  // k of one output at a time: reads stay in a line, writes in a few
  for (std::int64_t k0 = 0; k0 < inputs; k0 += unroll) {
    const std::int64_t k1 = std::min(inputs, k0 + unroll);
    for (std::int64_t o = 0; o < outputs; ++o) {
      for (std::int64_t k = k0; k < k1; ++k) {
        const std::int64_t index = (k / pair * panel_outputs + o) * pair + k % pair;
        std::memcpy(panel + index * width, rows + (o * inputs + k) * width, width);
      }
    }
  }
}

}  // namespace

std::int64_t Layout::code_bytes() const noexcept {
  switch (codes) {
    case Codes::f32:
      return 64;
    case Codes::f16:
      return 32;
    case Codes::bf16:
      return 64;
    case Codes::nibble:
      return 256;
    case Codes::nibble_bit:
      return 256 + 64;
    case Codes::byte:
      return 512;
  }
  return 0;
}

std::int64_t Layout::scale_bytes() const noexcept {
  if (!grouped()) return 0;
  return panel_outputs * (scales_are_f16 ? 2 : 4) * (has_minimum ? 2 : 1);
}

std::int64_t Layout::panel_bytes(std::int64_t inputs) const noexcept {
  std::int64_t units = inputs;
  if (codes == Codes::bf16) units = ceil_div<std::int64_t>(inputs, 2);
  if (grouped()) units = ceil_div(inputs, group_elements);
  return align_up<std::int64_t>(units * group_bytes(), 64);
}

std::optional<Layout> layout_of(const formats::Format& format) noexcept {
  Layout layout;
  if (format.kind == formats::Format::Kind::floating) {
    if (format.name == "f32") {
      layout.codes = Layout::Codes::f32;
    } else if (format.name == "f16") {
      layout.codes = Layout::Codes::f16;
    } else if (format.name == "bf16") {
      layout.codes = Layout::Codes::bf16;
    } else {
      return std::nullopt;
    }
    return layout;
  }
  if (format.group_elements != group || format.block_elements % group != 0 || format.block_elements > max_block ||
      format.code_bits < 1 || format.code_bits > 8 || format.factor_bits > 0 || format.codebook != nullptr) {
    return std::nullopt;
  }
  layout.codes = format.code_bits <= 4   ? Layout::Codes::nibble
                 : format.code_bits == 5 ? Layout::Codes::nibble_bit
                                         : Layout::Codes::byte;
  layout.scales_are_f16 = true;
  layout.has_minimum = format.has_minimum;
  layout.code_offset = format.code_offset;
  layout.group_elements = format.group_elements;
  return layout;
}

std::int64_t packed_bytes(const Layout& layout, std::int64_t outputs, std::int64_t inputs) noexcept {
  return panel_count(outputs) * layout.panel_bytes(inputs);
}

void pack_panels(const formats::Format& format, const Layout& layout, const std::byte* rows, std::int64_t outputs,
                 std::int64_t inputs, std::int64_t first_panel, std::int64_t last_panel, std::byte* packed) noexcept {
  const std::int64_t panel_bytes = layout.panel_bytes(inputs);
  const std::int64_t row_bytes = format.row_bytes(inputs);
  for (std::int64_t p = first_panel; p < last_panel; ++p) {
    const std::int64_t count = std::min(panel_outputs, outputs - p * panel_outputs);
    std::byte* panel = packed + (p - first_panel) * panel_bytes;
    const std::byte* source = rows + (p - first_panel) * panel_outputs * row_bytes;
    // What no output fills is zero, the panel's last line included, so that equal Weights have equal packed bytes.
    const bool whole = count == panel_outputs && layout.codes != Layout::Codes::bf16;
    const std::int64_t cleared = whole ? std::min<std::int64_t>(panel_bytes, 64) : panel_bytes;
    std::memset(panel + panel_bytes - cleared, 0, static_cast<std::size_t>(cleared));
    switch (layout.codes) {
      case Layout::Codes::f32:
        pack_floating<4, 1>(source, count, inputs, panel);
        break;
      case Layout::Codes::f16:
        pack_floating<2, 1>(source, count, inputs, panel);
        break;
      case Layout::Codes::bf16:
        pack_floating<2, 2>(source, count, inputs, panel);
        break;
      default:
        pack_grouped(format, layout, source, count, inputs, panel);
    }
  }
}

}  // namespace headrace::kernels
