// Layout: the packed order in which kernels read a Weight. Panels of 16 outputs; see docs/layout.md for the decision.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "formats/format.hpp"

namespace headrace::kernels {

/// Outputs of one panel: the lanes of the widest vector.
inline constexpr std::int64_t panel_outputs = 16;
/// Inputs of one unit of codes of a grouped Layout: one or two groups.
inline constexpr std::int64_t unit_inputs = 32;

/// The byte order of a packed Weight [N, K]: ceil(N / 16) panels one after the other, each of `panel_bytes(K)` bytes
/// (a multiple of 64). Outputs beyond N are zeros. Inside a panel, with o the output in the panel:
///
///   f32, f16    [k][o]
///   bf16        [ceil(k / 2)][o][k % 2]
///   grouped     spans one after the other, each of codes and scales (docs/layout.md).
///
/// Codes stand in units of 32 k, as `code_bits` lines of 64 bytes. Code line j has k = 4 j + i of output o at byte 4 o
/// + i; all lines of the unit hold bits of the same bytes of the 8 code lines (cj below, with its bits where not
/// whole):
///   bits   line 0          1              2                 3              4         5
///   2      c0 c1 c2 c3     c4 c5 c6 c7                                                       fields from bit 0 up
///   3      c0 c1 c6:0-1    c2 c3 c7:0-1   c4 c5 c6:2 c7:2
///   4      c0 c1           c2 c3          c4 c5             c6 c7
///   5      c0 c5:0-2       c1 c5:3-4 c7:3 c2 c6:0-2         c3 c6:3-4 c7:4 c4 c7:0-2
///   6      c0 c6:0-1       c1 c6:2-3      c2 c6:4-5         c3 c7:0-1      c4 c7:2-3 c5 c7:4-5
///   8      c0              c1 ...
///
/// Scales with one level are one a unit: a span is a unit's codes, then its 16 scales and, with minimums, 16 minimums.
/// Scales with factors: a span is 256 k: 16 f16 scales, 16 f16 minimums (with minimums), per group its 16 factors of
/// the scale and (with minimums) its 16 factors of the minimum, then 8 units of codes.
struct Layout {
  enum class Codes : std::uint8_t { f32, f16, bf16, grouped };
  enum class Scales : std::uint8_t {
    f16,      ///< one level: f16, minimums too
    e8m0,     ///< one level: bytes, 2^(exponent - 128)
    factors,  ///< f16 times an i8 of the group; minimums too
    nibbles,  ///< the same with factors below 16, those of scale and minimum in one byte, the scale's low
  };

  Codes codes = Codes::f32;
  Scales scales = Scales::f16;
  int code_bits = 0;                ///< grouped only, as all that follows
  std::int64_t group_elements = 1;  ///< 16 or 32; 32 with scales of one level
  bool has_minimum = false;
  int code_offset = 0;                    ///< what is taken from a code, or from codebook[code] + code_offset
  const std::int8_t* codebook = nullptr;  ///< 16 levels, of 4-bit codes; code_offset makes all of them positive

  [[nodiscard]] constexpr bool grouped() const noexcept { return codes == Codes::grouped; }
  [[nodiscard]] constexpr bool has_factors() const noexcept { return scales >= Scales::factors; }
  /// What a stored code stands for, in units of the scale.
  [[nodiscard]] constexpr int level(int code) const noexcept {
    return codebook != nullptr ? codebook[code] : code - code_offset;
  }
  /// Bits of code_offset + level(code): code_bits without a codebook, else 5 or 8.
  [[nodiscard]] int level_bits() const noexcept;
  /// Elements of k of a span: the smallest stretch that repeats.
  [[nodiscard]] constexpr std::int64_t span_elements() const noexcept {
    if (grouped()) return has_factors() ? 256 : unit_inputs;
    return codes == Codes::bf16 ? 2 : 1;
  }
  /// Bytes of the codes of one unit of a panel (grouped).
  [[nodiscard]] constexpr std::int64_t unit_bytes() const noexcept { return 64 * code_bits; }
  /// Bytes of a span's scales, minimums and factors of both.
  [[nodiscard]] std::int64_t scale_bytes() const noexcept;
  /// From one span of a panel to the next.
  [[nodiscard]] std::int64_t span_bytes() const noexcept;
  [[nodiscard]] std::int64_t panel_bytes(std::int64_t inputs) const noexcept;
};

/// The Layout of a Format, or nothing where there is none.
std::optional<Layout> layout_of(const formats::Format& format) noexcept;

[[nodiscard]] constexpr std::int64_t panel_count(std::int64_t outputs) noexcept {
  return (outputs + panel_outputs - 1) / panel_outputs;
}

/// Bytes of a packed Weight [outputs, inputs].
std::int64_t packed_bytes(const Layout& layout, std::int64_t outputs, std::int64_t inputs) noexcept;

}  // namespace headrace::kernels
