// The 16-lane vectors that kernels are written over, in the namespace of the instruction set being compiled.
//
// Kernel sources are compiled once per instruction set with different flags. An inline function of a shared header
// (std:: templates and headrace:: helpers included) that is not inlined would be emitted in each of these objects under
// one name, and the linker may keep the one that faults on older machines. So kernel sources call only what lives in
// their own namespace, compiler builtins, and plain C functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#ifndef HEADRACE_ISA
#error "kernel sources are compiled with -DHEADRACE_ISA=portable, avx2 or avx512"
#endif

#if defined(HEADRACE_ISA_AVX512)
#include "kernels/simd_avx512.hpp"
#elif defined(HEADRACE_ISA_AVX2)
#include "kernels/simd_avx2.hpp"
#else
#include "kernels/simd_portable.hpp"
#endif

namespace headrace::kernels::HEADRACE_ISA {

using Size = std::int64_t;

inline Size smaller(Size a, Size b) { return a < b ? a : b; }
inline Size larger(Size a, Size b) { return a > b ? a : b; }

/// The sum over 16 lanes by the fixed tree: lane l += lane l + 8, then + 4, + 2, + 1.
inline float tree_sum(Vec v) {
  alignas(64) float lane[16];
  store(lane, v);
  for (int width = 8; width >= 1; width /= 2) {
    for (int l = 0; l < width; ++l) lane[l] += lane[l + width];
  }
  return lane[0];
}

/// The largest lane. NaN lanes may or may not be passed over: callers make NaN show elsewhere.
inline float tree_max(Vec v) {
  alignas(64) float lane[16];
  store(lane, v);
  for (int width = 8; width >= 1; width /= 2) {
    for (int l = 0; l < width; ++l) lane[l] = lane[l] < lane[l + width] ? lane[l + width] : lane[l];
  }
  return lane[0];
}

/// One correctly rounded a * b + c, as every lane of fma() does it.
inline float fma_scalar(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

/// exp, for every input: overflow to infinity, gradual underflow to 0, NaN to NaN. At most 1 ulp off where the result
/// is normal (the test sweeps it). exp(x) = 2^n * p(r) with n = round(x / ln 2), r = x - n ln 2 in two FMAs, |r| <=
/// 0.347, and p of degree 7: the Taylor terms, whose remainder r^8 / 8! is below 2^-27.
inline Vec exp(Vec x) {
  x = min(set1(89.0f), x);  // above, every result is infinity; NaN stays (min gives its second argument)
  x = max(set1(-104.0f), x);
  const Vec magic = set1(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer, ties to even
  const Vec shifted = fma(x, set1(1.44269504f), magic);
  const Vec n = sub(shifted, magic);
  Vec r = fma(n, set1(-0.693359375f), x);  // 9 bits of ln 2: n times it is exact
  r = fma(n, set1(2.12194440e-4f), r);     // the rest of ln 2, negated
  Vec p = set1(1.0f / 5040.0f);
  p = fma(p, r, set1(1.0f / 720.0f));
  p = fma(p, r, set1(1.0f / 120.0f));
  p = fma(p, r, set1(1.0f / 24.0f));
  p = fma(p, r, set1(1.0f / 6.0f));
  p = fma(p, r, set1(0.5f));
  p = fma(p, r, set1(1.0f));
  p = fma(p, r, set1(1.0f));
  // 2^n in two normal factors: the first product is exact, the second rounds once, also into the subnormals.
  const Int exponent = sub(bits(shifted), bits(magic));
  const Int half = shift_right_1(exponent);
  const Int rest = sub(exponent, half);
  const Vec first = from_bits(shift_left_23(add(half, set1_int(127))));
  const Vec second = from_bits(shift_left_23(add(rest, set1_int(127))));
  return mul(mul(p, first), second);
}

/// x / (1 + exp(-x)).
inline Vec silu(Vec x) { return div(x, add(set1(1.0f), exp(sub(zero(), x)))); }

}  // namespace headrace::kernels::HEADRACE_ISA
