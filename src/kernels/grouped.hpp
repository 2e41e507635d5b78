// What kernels over grouped Layouts share: the compile-time part of a Layout, its scales, the list of those that there
// are kernels for.
#pragma once

#include "kernels/codes.hpp"

namespace headrace::kernels::HEADRACE_ISA {

/// The compile-time part of a grouped Layout. level_bits: of what a code stands for, code_bits without a codebook.
template <int code_bits_, int level_bits_, Layout::Scales scales_, int group_elements_, bool has_minimum_>
struct Grouped {
  static constexpr int code_bits = code_bits_;
  static constexpr int level_bits = level_bits_;
  static constexpr Layout::Scales scales = scales_;
  static constexpr int group_elements = group_elements_;
  static constexpr bool has_minimum = has_minimum_;
  static constexpr bool has_codebook = level_bits != code_bits;
  static constexpr bool has_factors = scales >= Layout::Scales::factors;
  static constexpr int unit_groups = unit_inputs / group_elements;
  static constexpr int span_units = has_factors ? 8 : 1;
  static constexpr Size unit_bytes = 64 * code_bits;
  /// With factors: of f16s before the factors of a span, and of a group's factors.
  static constexpr Size half_bytes = has_minimum ? 64 : 32;
  static constexpr Size factor_bytes = has_minimum && scales == Layout::Scales::factors ? 32 : 16;
  static constexpr Size scale_bytes = has_factors ? half_bytes + span_units * unit_groups * factor_bytes
                                      : scales == Layout::Scales::e8m0 ? 16
                                                                       : half_bytes;
  static constexpr Size span_bytes = span_units * unit_bytes + scale_bytes;

  static bool matches(const Layout& layout) noexcept {
    return layout.grouped() && layout.code_bits == code_bits && layout.level_bits() == level_bits &&
           layout.scales == scales && layout.group_elements == group_elements && layout.has_minimum == has_minimum;
  }
};

/// Reads the scales and minimums of the 16 outputs of a span. With factors a scale is `scale() * scale_factor(g)` of
/// group g of the span, else scale().
template <class G>
struct Span {
  explicit Span(const std::byte* span)
      : halves(G::has_factors ? span : span + G::unit_bytes), codes(G::has_factors ? span + G::scale_bytes : span) {}

  [[nodiscard]] Vec scale() const {
    if constexpr (G::scales == Layout::Scales::e8m0) return load_e8m0(halves);
    return load_f16(halves);
  }
  [[nodiscard]] Vec minimum() const { return load_f16(halves + 32); }
  [[nodiscard]] Vec scale_factor(Size g) const {
    const std::byte* p = halves + G::half_bytes + g * G::factor_bytes;
    if constexpr (G::scales == Layout::Scales::nibbles) return load_low_nibbles(p);
    return to_float(load_i8(p));
  }
  [[nodiscard]] Vec minimum_factor(Size g) const {
    const std::byte* p = halves + G::half_bytes + g * G::factor_bytes;
    if constexpr (G::scales == Layout::Scales::nibbles) return load_high_nibbles(p);
    return to_float(load_i8(p + 16));
  }

  const std::byte* halves;
  const std::byte* codes;  ///< of the first unit
};

/// Adds the exact sums over k of unsigned levels times activation digits to `sums`: over lines [first, first + count)
/// of a unit, for 16 outputs.
template <class G, int first, int count, int part = 0, int rows>
inline void unit_dots(const std::byte* codes, const Levels& levels, const Digits<G::level_bits, rows>& digits,
                      Int (&sums)[rows]) {
  constexpr int parts = line_parts<G::level_bits>;
  Part<G::level_bits> line[8];
  unpack<G::code_bits>(codes + 64 / parts * part, line);
  if constexpr (G::has_codebook) {
    for (int j = first; j < first + count; ++j) line[j] = look_up(levels, line[j]);
  }
  dots<G::level_bits, first, count, part>(line, digits, sums);
  if constexpr (part + 1 < parts) unit_dots<G, first, count, part + 1>(codes, levels, digits, sums);
}

template <class... Each>
struct List {};

/// The Layouts that Formats have; a Format whose properties are none of these needs a line here (and the test of
/// linear says so).
using GroupedLayouts = List<Grouped<4, 4, Layout::Scales::f16, 32, false>,       // q4_0
                            Grouped<4, 4, Layout::Scales::f16, 32, true>,        // q4_1
                            Grouped<5, 5, Layout::Scales::f16, 32, false>,       // q5_0
                            Grouped<5, 5, Layout::Scales::f16, 32, true>,        // q5_1
                            Grouped<8, 8, Layout::Scales::f16, 32, false>,       // q8_0
                            Grouped<4, 8, Layout::Scales::f16, 32, false>,       // iq4_nl
                            Grouped<4, 5, Layout::Scales::e8m0, 32, false>,      // mxfp4
                            Grouped<2, 2, Layout::Scales::nibbles, 16, true>,    // q2_k
                            Grouped<3, 3, Layout::Scales::factors, 16, false>,   // q3_k
                            Grouped<4, 4, Layout::Scales::factors, 32, true>,    // q4_k
                            Grouped<5, 5, Layout::Scales::factors, 32, true>,    // q5_k
                            Grouped<6, 6, Layout::Scales::factors, 16, false>,   // q6_k
                            Grouped<4, 8, Layout::Scales::factors, 32, false>>;  // iq4_xs

/// `Instance<G>::run` for the G of the list that matches the Layout, or nullptr.
template <template <class> class Instance, class... Each>
auto find_instance(const Layout& layout, List<Each...>) noexcept {
  decltype(&Instance<Grouped<4, 4, Layout::Scales::f16, 32, false>>::run) found = nullptr;
  ((found = Each::matches(layout) ? Instance<Each>::run : found), ...);
  return found;
}

}  // namespace headrace::kernels::HEADRACE_ISA
