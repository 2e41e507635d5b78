// Elementwise kernels. Limit: memory bytes read and written (exp, silu: about 20 FMA slots per 16 elements).
#include "kernels/isa.hpp"

namespace headrace::kernels::HEADRACE_ISA {
namespace {

template <class Function>
inline void for_each(const float* a, float* y, Size n, Function function) {
  Size i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, function(load(a + i)));
  if (i < n) store_partial(y + i, function(load_partial(a + i, n - i)), n - i);
}

template <class Function>
inline void for_each(const float* a, const float* b, float* y, Size n, Function function) {
  Size i = 0;
  for (; i + 16 <= n; i += 16) store(y + i, function(load(a + i), load(b + i)));
  if (i < n) store_partial(y + i, function(load_partial(a + i, n - i), load_partial(b + i, n - i)), n - i);
}

}  // namespace

void add_rows(const float* a, const float* b, float* y, Size n) noexcept {
  for_each(a, b, y, n, [](Vec u, Vec v) { return add(u, v); });
}

void multiply_rows(const float* a, const float* b, float* y, Size n) noexcept {
  for_each(a, b, y, n, [](Vec u, Vec v) { return mul(u, v); });
}

void scale_rows(const float* a, float s, float* y, Size n) noexcept {
  for_each(a, y, n, [s](Vec u) { return mul(u, set1(s)); });
}

void add_scaled_rows(const float* a, float s, float* y, Size n) noexcept {
  for_each(a, y, y, n, [s](Vec u, Vec v) { return fma(u, set1(s), v); });
}

void exp_rows(const float* a, float* y, Size n) noexcept {
  for_each(a, y, n, [](Vec u) { return exp(u); });
}

void silu_rows(const float* a, float* y, Size n) noexcept {
  for_each(a, y, n, [](Vec u) { return silu(u); });
}

void silu_multiply_rows(const float* gate, const float* up, float* y, Size n) noexcept {
  for_each(gate, up, y, n, [](Vec u, Vec v) { return mul(silu(u), v); });
}

void clamped_swiglu_rows(const float* gate, const float* up, float alpha, float limit, float* y, Size n) noexcept {
  for_each(gate, up, y, n, [alpha, limit](Vec u, Vec v) {
    // min and max give their second argument where one is NaN.
    const Vec g = min(set1(limit), u);
    const Vec h = max(set1(-limit), min(set1(limit), v));
    const Vec one = set1(1.0f);
    const Vec sigmoid = div(g, add(one, exp(sub(zero(), mul(set1(alpha), g)))));
    return mul(sigmoid, add(h, one));
  });
}

}  // namespace headrace::kernels::HEADRACE_ISA
