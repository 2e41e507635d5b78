// linear over grouped Weights, numerics a16_group32, with VNNI dots. Limit: bytes of the Weight for few rows; for many,
// vpdpbusd slots: 16 of them, 8 a digit, to 6 or 7 others for a row, a panel and a group.
#include "kernels/grouped.hpp"

namespace headrace::kernels::HEADRACE_ISA {
namespace {

/// 4 activation codes for every output: becomes the broadcast operand of vpdpbusd.
inline __m512i four_codes(const std::byte* p) {
  std::int32_t word = 0;
  memcpy(&word, p, 4);
  return _mm512_set1_epi32(word);
}

inline Vec broadcast(const std::byte* p) {
  float value = 0;
  memcpy(&value, p, 4);
  return set1(value);
}

template <class G, int rows>
void tile(const LinearArgs& args, const std::byte* panel, Size row, float* out, Size outputs) {
  const A16Row encoded = a16_row(args.inputs);
  const std::byte* x[rows];
  Vec sums[rows];
  for (int r = 0; r < rows; ++r) {
    x[r] = args.activations + (row + r) * args.activation_stride;
    sums[r] = zero();
  }
  const Size groups = args.inputs / 32;
  const __m512i negative_offset = _mm512_set1_epi32(-args.layout.code_offset);
  const bool offset = args.layout.code_offset != 0;
  Lines lines;
  for (Size g = 0; g < groups; ++g, panel += G::group_bytes) {
    unpack<G>(panel, lines);
    __m512i high[rows];
    __m512i low[rows];
    for (int r = 0; r < rows; ++r) high[r] = low[r] = _mm512_setzero_si512();
    if (offset) {
      for (int r = 0; r < rows; ++r) {
        low[r] = _mm512_mullo_epi32(negative_offset, four_codes(x[r] + encoded.sums + 4 * g));
      }
    }
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) {
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        high[r] = _mm512_dpbusd_epi32(high[r], lines.line[j], four_codes(x[r] + 64 * g + 4 * j));
        low[r] = _mm512_dpbusd_epi32(low[r], lines.line[j], four_codes(x[r] + 64 * g + 32 + 4 * j));
      }
    }
    const Vec scale = load_scales<G>(panel + G::code_bytes);
    for (int r = 0; r < rows; ++r) {
      const Int dots = add(times_255({high[r]}), {low[r]});
      sums[r] = fma(scale, mul(to_float(dots), broadcast(x[r] + encoded.scales + 4 * g)), sums[r]);
    }
    if constexpr (G::has_minimum) {
      const Vec minimum = load_scales<G>(panel + G::code_bytes + G::vector_bytes);
      for (int r = 0; r < rows; ++r) {
        sums[r] = fma(minimum, broadcast(x[r] + encoded.scaled_sums + 4 * g), sums[r]);
      }
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

LinearFunction find_linear_grouped(const Layout& layout) noexcept { return find_instance<Linear>(layout); }

}  // namespace headrace::kernels::HEADRACE_ISA
