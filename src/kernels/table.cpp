// The table of one instruction set.
#include "kernels/isa.hpp"

namespace headrace::kernels::HEADRACE_ISA {
namespace {

LinearFunction find_linear(const Layout& layout, LinearNumerics numerics) noexcept {
  switch (numerics) {
    case LinearNumerics::two_chains:
      return layout.grouped() ? nullptr : find_linear_floating(layout);
    case LinearNumerics::a16_group32:
      return layout.grouped() ? find_linear_grouped(layout) : nullptr;
  }
  return nullptr;
}

}  // namespace

const KernelTable table = {.isa = Isa::HEADRACE_ISA,
                           .find_linear = find_linear,
                           .encode_a16 = encode_a16,
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
                           .exp = exp_rows,
                           .silu = silu_rows,
                           .silu_multiply = silu_multiply_rows};

}  // namespace headrace::kernels::HEADRACE_ISA
