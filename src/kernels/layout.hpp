// Layout: the packed order in which kernels read a Weight. Panels of 16 outputs; see docs/layout.md for the decision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "formats/format.hpp"

namespace headrace::kernels {

/// Outputs of one panel: the lanes of the widest vector.
inline constexpr std::int64_t panel_outputs = 16;

/// The byte order of a packed Weight [N, K]: ceil(N / 16) panels one after the other, each of `panel_bytes(K)` bytes
/// (a multiple of 64). Outputs beyond N are zeros. Inside a panel, with o the output in the panel:
///
///   f32, f16    [k][o]
///   bf16        [ceil(k / 2)][o][k % 2]
///   grouped     group by group: its codes, its 16 scales and, with minimums, its 16 minimums (f16 or f32).
///               Codes of a group of 32, byte o * 4 + i of a 64-byte line holding k = 4 * j + i:
///     nibble      4 lines; line l holds j = 2 l in its low nibbles and j = 2 l + 1 in its high ones
///     nibble_bit  the same, then 8 masks of 64 bits: bit o * 4 + i of mask j is the fifth bit of that code
///     byte        8 lines; line j
struct Layout {
  enum class Codes : std::uint8_t { f32, f16, bf16, nibble, nibble_bit, byte };

  Codes codes = Codes::f32;
  bool scales_are_f16 = false;
  bool has_minimum = false;
  int code_offset = 0;
  std::int64_t group_elements = 1;

  [[nodiscard]] constexpr bool grouped() const noexcept { return codes >= Codes::nibble; }
  /// Bytes of the codes of one group of a panel (grouped), or of one k of a panel (floating; bf16: of a pair of k).
  [[nodiscard]] std::int64_t code_bytes() const noexcept;
  /// Bytes of the scales and minimums of one group of a panel.
  [[nodiscard]] std::int64_t scale_bytes() const noexcept;
  /// From one group of a panel to the next.
  [[nodiscard]] std::int64_t group_bytes() const noexcept { return code_bytes() + scale_bytes(); }
  [[nodiscard]] std::int64_t panel_bytes(std::int64_t inputs) const noexcept;
};

/// The Layout of a Format, or nothing where there is none (groups other than 32, codes wider than 8 bits).
std::optional<Layout> layout_of(const formats::Format& format) noexcept;

[[nodiscard]] constexpr std::int64_t panel_count(std::int64_t outputs) noexcept {
  return (outputs + panel_outputs - 1) / panel_outputs;
}

/// Bytes of a packed Weight [outputs, inputs].
std::int64_t packed_bytes(const Layout& layout, std::int64_t outputs, std::int64_t inputs) noexcept;

/// Packs panels [first_panel, last_panel) of a Weight [outputs, inputs] in `format`.
/// `rows`: the file's bytes of the rows from first_panel * 16 on (at least those that these panels cover);
/// `packed`: where panel first_panel goes. `inputs` is a multiple of the Format's block.
void pack_panels(const formats::Format& format, const Layout& layout, const std::byte* rows, std::int64_t outputs,
                 std::int64_t inputs, std::int64_t first_panel, std::int64_t last_panel, std::byte* packed) noexcept;

}  // namespace headrace::kernels
