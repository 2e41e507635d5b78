// linear over grouped Weights, numerics a16_group32, for portable and avx2. Limit: bytes of the Weight for few rows,
// int8 dots for many.
#include "kernels/grouped.hpp"

namespace headrace::kernels::HEADRACE_ISA {
namespace {

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
  Lines lines;
  for (Size g = 0; g < groups; ++g, panel += G::group_bytes) {
    unpack<G>(panel, lines);
    const Vec scale = load_scales<G>(panel + G::code_bytes);
    for (int r = 0; r < rows; ++r) {
      std::int32_t code_sum = 0;
      float activation_scale = 0;
      memcpy(&code_sum, x[r] + encoded.sums + 4 * g, 4);
      memcpy(&activation_scale, x[r] + encoded.scales + 4 * g, 4);
      std::int8_t digits[64];
      memcpy(digits, x[r] + 64 * g, 64);
      const Int high = dot<G::code_bits>(lines, digits, 0);
      const Int low = dot<G::code_bits>(lines, digits + 32, -args.layout.code_offset * code_sum);
      const Int dots = add(times_255(high), low);
      sums[r] = fma(scale, mul(to_float(dots), set1(activation_scale)), sums[r]);
      if constexpr (G::has_minimum) {
        float scaled_sum = 0;
        memcpy(&scaled_sum, x[r] + encoded.scaled_sums + 4 * g, 4);
        sums[r] = fma(load_scales<G>(panel + G::code_bytes + G::vector_bytes), set1(scaled_sum), sums[r]);
      }
    }
  }
  for (int r = 0; r < rows; ++r) store_partial(out + r * args.out_stride, sums[r], outputs);
}

template <class G>
struct Linear {
  static void run(const LinearArgs& args, Size first_panel, Size last_panel) noexcept {
    const Size panel_bytes = args.layout.panel_bytes(args.inputs);
    for (Size p = first_panel; p < last_panel; ++p) {
      const std::byte* panel = args.packed + p * panel_bytes;
      const Size outputs = smaller(panel_outputs, args.outputs - p * panel_outputs);
      float* out = args.out + p * panel_outputs;
      Size row = 0;
      for (; row + 4 <= args.rows; row += 4) tile<G, 4>(args, panel, row, out + row * args.out_stride, outputs);
      for (; row < args.rows; ++row) tile<G, 1>(args, panel, row, out + row * args.out_stride, outputs);
    }
  }
};

}  // namespace

LinearFunction find_linear_grouped(const Layout& layout) noexcept { return find_instance<Linear>(layout); }

}  // namespace headrace::kernels::HEADRACE_ISA
