// linear over f32, f16 and bf16 Weights, numerics two_chains: weights are widened exactly, and an output is the sum of
// two ordered f32 FMA chains, over even and over odd k. Limit: bytes of the Weight for few rows, FMA slots for many.
#include "kernels/isa.hpp"

namespace headrace::kernels::HEADRACE_ISA {
namespace {

/// Not by memcpy into a Vec: of two registers GCC makes a copy in memory, and AVX2 waits for it (6 GB/s of 110 in L2).
inline Vec load_floats(const std::byte* p) { return load(static_cast<const float*>(static_cast<const void*>(p))); }

/// The weights of k and k + 1 for the 16 outputs of a panel; `pair` = k / 2.
template <Layout::Codes codes>
inline Vec load_even(const std::byte* panel, Size pair) {
  if constexpr (codes == Layout::Codes::f16) return load_f16(panel + 64 * pair);
  if constexpr (codes == Layout::Codes::bf16) return load_bf16_even(panel + 64 * pair);
  return load_floats(panel + 128 * pair);
}

template <Layout::Codes codes>
inline Vec load_odd(const std::byte* panel, Size pair) {
  if constexpr (codes == Layout::Codes::f16) return load_f16(panel + 64 * pair + 32);
  if constexpr (codes == Layout::Codes::bf16) return load_bf16_odd(panel + 64 * pair);
  return load_floats(panel + 128 * pair + 64);
}

template <Layout::Codes codes, int rows>
void tile(const LinearArgs& args, const std::byte* panel, Size row, float* out, Size outputs) {
  const float* x[rows];
  Vec even[rows];
  Vec odd[rows];
  for (int r = 0; r < rows; ++r) {
    x[r] = static_cast<const float*>(static_cast<const void*>(args.activations + (row + r) * args.activation_stride));
    even[r] = zero();
    odd[r] = zero();
  }
  const Size pairs = args.inputs / 2;
  for (Size pair = 0; pair < pairs; ++pair) {
    const Vec w0 = load_even<codes>(panel, pair);
    const Vec w1 = load_odd<codes>(panel, pair);
    for (int r = 0; r < rows; ++r) {
      even[r] = fma(w0, set1(x[r][2 * pair]), even[r]);
      odd[r] = fma(w1, set1(x[r][2 * pair + 1]), odd[r]);
    }
  }
  if (args.inputs % 2 != 0) {
    const Vec w0 = load_even<codes>(panel, pairs);
    for (int r = 0; r < rows; ++r) even[r] = fma(w0, set1(x[r][2 * pairs]), even[r]);
  }
  for (int r = 0; r < rows; ++r) store_partial(out + r * args.out_stride, add(even[r], odd[r]), outputs);
}

template <Layout::Codes codes>
void linear(const LinearArgs& args, Size first_panel, Size last_panel) noexcept {
  const Size panel_bytes = args.layout.panel_bytes(args.inputs);
  for (Size p = first_panel; p < last_panel; ++p) {
    const std::byte* panel = args.packed + p * panel_bytes;
    const Size outputs = smaller(panel_outputs, args.outputs - p * panel_outputs);
    Size row = 0;
    const auto out = [&] { return args.out + row * args.out_stride + p * panel_outputs; };
    for (; row + float_rows <= args.rows; row += float_rows) tile<codes, float_rows>(args, panel, row, out(), outputs);
    for (; row + 2 <= args.rows; row += 2) tile<codes, 2>(args, panel, row, out(), outputs);
    if (row < args.rows) tile<codes, 1>(args, panel, row, out(), outputs);
  }
}

}  // namespace

LinearFunction find_linear_floating(const Layout& layout) noexcept {
  switch (layout.codes) {
    case Layout::Codes::f32:
      return linear<Layout::Codes::f32>;
    case Layout::Codes::f16:
      return linear<Layout::Codes::f16>;
    case Layout::Codes::bf16:
      return linear<Layout::Codes::bf16>;
    default:
      return nullptr;
  }
}

}  // namespace headrace::kernels::HEADRACE_ISA
