// What the kernel sources of one instruction set give to its table; included after kernels.hpp, in each build of them.
#pragma once

#include "kernels/kernels.hpp"
#include "kernels/simd.hpp"

namespace headrace::kernels::HEADRACE_ISA {

// linear_floating.cpp, linear_grouped.cpp
LinearFunction find_linear_floating(const Layout& layout) noexcept;
LinearFunction find_linear_grouped(const Layout& layout) noexcept;

// pack.cpp
void pack_panels(const formats::Format& format, const Layout& layout, const std::byte* rows, Size outputs, Size inputs,
                 Size first_panel, Size last_panel, std::byte* packed) noexcept;

// rows.cpp
void encode_a16(const float* in, Size in_stride, std::byte* out, Size out_stride, Size inputs, Size rows) noexcept;
void encode_a16_blocks(const float* in, Size in_stride, std::byte* out, Size out_stride, Size inputs, Size first,
                       Size last, Size rows) noexcept;
void gather_rows(const Layout& layout, const std::byte* packed, Size inputs, const std::int32_t* ids, Size rows,
                 float* out, Size out_stride) noexcept;
void rms_norm(const float* x, Size x_stride, const float* weight, float epsilon, float* y, Size y_stride, Size width,
              Size rows) noexcept;
void rope(const RopeArgs& args, Size first_row, Size last_row) noexcept;
void kv_append(const KvAppendArgs& args, Size first_row, Size last_row) noexcept;

// elementwise.cpp
void add_rows(const float* a, const float* b, float* y, Size n) noexcept;
void multiply_rows(const float* a, const float* b, float* y, Size n) noexcept;
void scale_rows(const float* a, float s, float* y, Size n) noexcept;
void add_scaled_rows(const float* a, float s, float* y, Size n) noexcept;
void exp_rows(const float* a, float* y, Size n) noexcept;
void silu_rows(const float* a, float* y, Size n) noexcept;
void silu_multiply_rows(const float* gate, const float* up, float* y, Size n) noexcept;
void clamped_swiglu_rows(const float* gate, const float* up, float alpha, float limit, float* y, Size n) noexcept;

// append_q8.cpp
void append_keys_q8(const float* in, Size head_width, Size first, Size last, Size slot, std::byte* page) noexcept;
void append_values_q8(const float* in, Size head_width, Size first, Size last, Size slot, std::byte* page) noexcept;

// attention.cpp
void attention(const AttentionArgs& args, Size first_item, Size last_item) noexcept;
void attention_partial(const AttentionArgs& args, Size first_item, Size last_item) noexcept;
void attention_combine(const AttentionArgs& args, Size first_item, Size last_item) noexcept;

// table.cpp
extern const KernelTable table;

}  // namespace headrace::kernels::HEADRACE_ISA
