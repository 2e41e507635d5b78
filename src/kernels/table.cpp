// The table of one instruction set.
#include "kernels/isa.hpp"

namespace headrace::kernels::HEADRACE_ISA {
namespace {

LinearFunction find_linear(const Layout& layout, LinearNumerics numerics) noexcept {
  if (numerics != linear_numerics(layout, TokenClass::generated, Isa::HEADRACE_ISA)) return nullptr;
  return layout.grouped() ? find_linear_grouped(layout) : find_linear_floating(layout);
}

}  // namespace

const KernelTable table = {.isa = Isa::HEADRACE_ISA,
                           .find_linear = find_linear,
                           .pack_panels = pack_panels,
                           .encode_a16 = encode_a16,
                           .encode_a16_blocks = encode_a16_blocks,
                           .gather_rows = gather_rows,
                           .rms_norm = rms_norm,
                           .rope = rope,
                           .kv_append = kv_append,
                           .append_keys_q8 = append_keys_q8,
                           .append_values_q8 = append_values_q8,
                           .attention = attention,
                           .attention_partial = attention_partial,
                           .attention_combine = attention_combine,
                           .add = add_rows,
                           .multiply = multiply_rows,
                           .scale = scale_rows,
                           .add_scaled = add_scaled_rows,
                           .exp = exp_rows,
                           .silu = silu_rows,
                           .silu_multiply = silu_multiply_rows,
                           .clamped_swiglu = clamped_swiglu_rows};

}  // namespace headrace::kernels::HEADRACE_ISA
