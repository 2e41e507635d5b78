// linear over grouped Weights, numerics a16_group32, a16_factors32 and a16_factors16. Limit: bytes of the Weight for
// few rows; for many, int8 dots: with VNNI 16 vpdpbusd slots, 8 a digit, to 5 to 9 others for a row, a panel and 32 k.
//
// Tried and lost at T = 1 (docs/layout.md has figures): planes of single bits, masks of fifth bits, scales multiplied
// out per group, digits of base 255, software prefetch; in AVX2, digits copied to the stack before they are broadcast
// (a tenth), halves of lines kept apart in the dots of words too (a tenth to a quarter), whole lines unpacked for dots
// with digits (a tenth to a fifth for several rows). AVX2 is bound by its vector operations, of which Zen 3 does 3 a
// cycle: for a row, a panel and 32 k of 4 bits 60 multiply and add, 24 unpack, 18 scale.
#include "kernels/grouped.hpp"

namespace headrace::kernels::HEADRACE_ISA {
namespace {

inline Vec broadcast(const std::byte* p) {
  float value = 0;
  memcpy(&value, p, 4);
  return set1(value);
}

/// The encoded rows of a tile, and where in them the sums of groups stand.
template <class G, int rows>
struct Activations {
  Activations(const LinearArgs& args, Size first) {
    const A16Row row = a16_row(args.inputs);
    scales = row.scales;
    sums = G::unit_groups == 1 ? row.sums : row.half_sums;
    scaled_sums = G::unit_groups == 1 ? row.scaled_sums : row.half_scaled_sums;
    for (int r = 0; r < rows; ++r) x[r] = args.activations + (first + r) * args.activation_stride;
  }
  [[nodiscard]] Digits<G::level_bits, rows> digits(Size unit) const {
    Digits<G::level_bits, rows> digits;
    for (int r = 0; r < rows; ++r) digits.set(r, x[r] + 64 * unit);
    return digits;
  }
  [[nodiscard]] Vec scale(int r, Size unit) const { return broadcast(x[r] + scales + 4 * unit); }
  [[nodiscard]] Vec scaled_sum(int r, Size group) const { return broadcast(x[r] + scaled_sums + 4 * group); }

  const std::byte* x[rows];
  Size scales;
  Size sums;
  Size scaled_sums;
};

/// The exact sums of levels times codes over group `half` of a unit.
template <class G, int half, int rows>
inline void group_dots(const std::byte* codes, const Levels& levels, const Activations<G, rows>& activations,
                       const Digits<G::level_bits, rows>& digits, Size unit, Int negative_offset, Int (&dot)[rows]) {
  constexpr int count = G::group_elements / 4;
  for (int r = 0; r < rows; ++r) {
    const std::byte* x = activations.x[r];
    const Size group = unit * G::unit_groups + half;
    dot[r] = G::has_minimum ? set1_int(0) : product_of(negative_offset, x + activations.sums + 4 * group);
  }
  unit_dots<G, half * count, count>(codes, levels, digits, dot);
}

/// A span of one level: a unit, which is a group.
template <class G, int rows>
inline void add_span(const std::byte* panel, const Levels& levels, const Activations<G, rows>& activations, Size unit,
                     Int negative_offset, Vec (&sums)[rows]) {
  const Span<G> span(panel);
  Int dot[rows];
  group_dots<G, 0, rows>(span.codes, levels, activations, activations.digits(unit), unit, negative_offset, dot);
  const Vec scale = span.scale();
  for (int r = 0; r < rows; ++r) sums[r] = fma(scale, mul(to_float(dot[r]), activations.scale(r, unit)), sums[r]);
  if constexpr (G::has_minimum) {
    const Vec minimum = span.minimum();
    for (int r = 0; r < rows; ++r) sums[r] = fma(minimum, activations.scaled_sum(r, unit), sums[r]);
  }
}

/// A span with factors: 8 units of one or two groups, whose sums are put together under the factors.
template <class G, int rows>
inline void add_span_of_factors(const std::byte* panel, const Levels& levels, const Activations<G, rows>& activations,
                                Size first_unit, Int negative_offset, Vec (&sums)[rows]) {
  const Span<G> span(panel);
  Vec scaled[rows];
  Vec minimums[rows];
  for (int r = 0; r < rows; ++r) scaled[r] = minimums[r] = zero();
  const std::byte* codes = span.codes;
  for (Size u = 0; u < G::span_units; ++u, codes += G::unit_bytes) {
    const Size unit = first_unit + u;
    const Size group = u * G::unit_groups;
    const Digits<G::level_bits, rows> digits = activations.digits(unit);
    Int dot[rows];
    Vec products[rows];
    group_dots<G, 0, rows>(codes, levels, activations, digits, unit, negative_offset, dot);
    const Vec factor = span.scale_factor(group);
    for (int r = 0; r < rows; ++r) products[r] = mul(factor, to_float(dot[r]));
    if constexpr (G::unit_groups == 2) {
      group_dots<G, 1, rows>(codes, levels, activations, digits, unit, negative_offset, dot);
      const Vec second = span.scale_factor(group + 1);
      for (int r = 0; r < rows; ++r) products[r] = fma(second, to_float(dot[r]), products[r]);
    }
    for (int r = 0; r < rows; ++r) scaled[r] = fma(products[r], activations.scale(r, unit), scaled[r]);
    if constexpr (G::has_minimum) {
      for (Size g = 0; g < G::unit_groups; ++g) {
        const Vec minimum = span.minimum_factor(group + g);
        for (int r = 0; r < rows; ++r) {
          minimums[r] = fma(minimum, activations.scaled_sum(r, unit * G::unit_groups + g), minimums[r]);
        }
      }
    }
  }
  const Vec scale = span.scale();
  for (int r = 0; r < rows; ++r) sums[r] = fma(scale, scaled[r], sums[r]);
  if constexpr (G::has_minimum) {
    const Vec minimum = span.minimum();
    for (int r = 0; r < rows; ++r) sums[r] = fma(minimum, minimums[r], sums[r]);
  }
}

template <class G, int rows>
void tile(const LinearArgs& args, const std::byte* panel, Size row, float* out, Size outputs) {
  const Activations<G, rows> activations(args, row);
  Vec sums[rows];
  for (int r = 0; r < rows; ++r) sums[r] = zero();
  const Int negative_offset = set1_int(-args.layout.code_offset);
  const Levels levels = G::has_codebook ? levels_of(args.layout) : Levels{};
  const Size units = args.inputs / unit_inputs;
  for (Size unit = 0; unit < units; unit += G::span_units, panel += G::span_bytes) {
    if constexpr (G::has_factors) {
      add_span_of_factors<G, rows>(panel, levels, activations, unit, negative_offset, sums);
    } else {
      add_span<G, rows>(panel, levels, activations, unit, negative_offset, sums);
    }
  }
  for (int r = 0; r < rows; ++r) store_partial(out + r * args.out_stride, sums[r], outputs);
}

template <class G>
struct Linear {
  static void run(const LinearArgs& args, Size first_panel, Size last_panel) noexcept {
    const Size panel_bytes = args.layout.panel_bytes(args.inputs);
    // Rows in chunks whose codes stay in L2 while all panels pass over them.
    const Size chunk = args.activation_stride * 8 > chunk_bytes ? 8 : chunk_bytes / args.activation_stride / 8 * 8;
    for (Size first_row = 0; first_row < args.rows; first_row += chunk) {
      const Size last_row = smaller(args.rows, first_row + chunk);
      for (Size p = first_panel; p < last_panel; ++p) {
        const std::byte* panel = args.packed + p * panel_bytes;
        const Size outputs = smaller(panel_outputs, args.outputs - p * panel_outputs);
        float* out = args.out + p * panel_outputs;
        const Size stride = args.out_stride;
        Size row = first_row;
        for (; row + 4 <= last_row; row += 4) tile<G, 4>(args, panel, row, out + row * stride, outputs);
        if (row + 2 <= last_row) {
          tile<G, 2>(args, panel, row, out + row * stride, outputs);
          row += 2;
        }
        if (row < last_row) tile<G, 1>(args, panel, row, out + row * stride, outputs);
      }
    }
  }
  static constexpr Size chunk_bytes = Size{384} << 10;
};

}  // namespace

LinearFunction find_linear_grouped(const Layout& layout) noexcept {
  return find_instance<Linear>(layout, GroupedLayouts{});
}

}  // namespace headrace::kernels::HEADRACE_ISA
