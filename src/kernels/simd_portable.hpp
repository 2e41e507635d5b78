// 16 lanes in plain C++: right on every CPU, and the == oracle of the other instruction sets.
#pragma once

#include "base/half.hpp"

namespace headrace::kernels::HEADRACE_ISA {

struct Vec {
  float lane[16];
};
struct Int {
  std::int32_t lane[16];
};

// Register tiles that suit the instruction set.
inline constexpr int score_queries = 4;   ///< query rows that share a load of K
inline constexpr int score_sums = 8;      ///< sums of 16 scores at a time
inline constexpr int output_queries = 4;  ///< query rows that share a load of V
inline constexpr int output_vectors = 2;  ///< vectors of V's width at a time
inline constexpr int float_rows = 4;      ///< rows that share a load of a floating Weight

#if !defined(__FP_FAST_FMAF)
/// a * b + c, rounded once, for two lanes. Without an instruction for it libm's function costs a call a lane; this does
/// not: the product is exact in double, and the sum is rounded to odd (Boldo and Melquiond, "Emulation of a FMA and
/// correctly rounded sums", 2008), so that the last rounding, to float, is the only one that counts.
inline void fused_pair(const float* a, const float* b, const float* c, float* y) {
  using Double = double __attribute__((vector_size(16)));
  using Word = std::int64_t __attribute__((vector_size(16)));
  const Double product = Double{a[0], a[1]} * Double{b[0], b[1]};
  const Double addend = {c[0], c[1]};
  const Double sum = product + addend;
  const Double part = sum - product;
  const Double error = (product - (sum - part)) + (addend - part);  // exactly; NaN where the sum is not finite
  const Word inexact = (error > 0.0) | (error < 0.0);               // all ones where it holds
  const Word sum_bits = __builtin_bit_cast(Word, sum);
  const Word toward_zero = __builtin_bit_cast(Word, (error < 0.0) ^ (sum < 0.0));
  const Word even = (sum_bits & 1) - 1;  // all ones where it holds
  const Word step = (toward_zero | 1) & inexact & even;
  const Double odd = __builtin_bit_cast(Double, sum_bits + step);
  y[0] = static_cast<float>(odd[0]);
  y[1] = static_cast<float>(odd[1]);
}
#endif

#define HEADRACE_LANES(expression)                       \
  Vec y;                                                 \
  for (int l = 0; l < 16; ++l) y.lane[l] = (expression); \
  return y
#define HEADRACE_INT_LANES(expression)                   \
  Int y;                                                 \
  for (int l = 0; l < 16; ++l) y.lane[l] = (expression); \
  return y

inline Vec set1(float x) { HEADRACE_LANES(x); }
inline Vec zero() { return set1(0.0f); }
inline Vec load(const float* p) { HEADRACE_LANES(p[l]); }
inline Vec load_partial(const float* p, std::int64_t n) { HEADRACE_LANES(l < n ? p[l] : 0.0f); }
inline void store(float* p, Vec v) {
  for (int l = 0; l < 16; ++l) p[l] = v.lane[l];
}
inline void store_partial(float* p, Vec v, std::int64_t n) {
  for (int l = 0; l < 16 && l < n; ++l) p[l] = v.lane[l];
}
inline Vec add(Vec a, Vec b) { HEADRACE_LANES(a.lane[l] + b.lane[l]); }
inline Vec sub(Vec a, Vec b) { HEADRACE_LANES(a.lane[l] - b.lane[l]); }
inline Vec mul(Vec a, Vec b) { HEADRACE_LANES(a.lane[l] * b.lane[l]); }
inline Vec div(Vec a, Vec b) { HEADRACE_LANES(a.lane[l] / b.lane[l]); }
inline Vec fma(Vec a, Vec b, Vec c) {
  Vec y;
#if defined(__FP_FAST_FMAF)
  for (int l = 0; l < 16; ++l) y.lane[l] = __builtin_fmaf(a.lane[l], b.lane[l], c.lane[l]);
#else
  for (int l = 0; l < 16; l += 2) fused_pair(a.lane + l, b.lane + l, c.lane + l, y.lane + l);
#endif
  return y;
}
/// a > b ? a : b, so b where either is NaN, as maxps does; min likewise.
inline Vec max(Vec a, Vec b) { HEADRACE_LANES(a.lane[l] > b.lane[l] ? a.lane[l] : b.lane[l]); }
inline Vec min(Vec a, Vec b) { HEADRACE_LANES(a.lane[l] < b.lane[l] ? a.lane[l] : b.lane[l]); }

/// 16 f16 or bf16, widened exactly.
inline Vec load_f16(const std::byte* p) {
  std::uint16_t half[16];
  memcpy(half, p, 32);
  HEADRACE_LANES(f16_to_f32(half[l]));
}
inline void store_f16(std::byte* p, Vec v) {
  std::uint16_t half[16];
  for (int l = 0; l < 16; ++l) half[l] = f32_to_f16(v.lane[l]);
  memcpy(p, half, 32);
}
inline Vec load_bf16(const std::byte* p) {
  std::uint16_t half[16];
  memcpy(half, p, 32);
  HEADRACE_LANES(bf16_to_f32(half[l]));
}
/// Pairs [16][2] of bf16: the first or the second of each pair.
inline Vec load_bf16_even(const std::byte* p) {
  std::uint32_t pair[16];
  memcpy(pair, p, 64);
  HEADRACE_LANES(__builtin_bit_cast(float, pair[l] << 16));
}
inline Vec load_bf16_odd(const std::byte* p) {
  std::uint32_t pair[16];
  memcpy(pair, p, 64);
  HEADRACE_LANES(__builtin_bit_cast(float, pair[l] & 0xffff0000u));
}

inline Int set1_int(std::int32_t x) { HEADRACE_INT_LANES(x); }
inline Int bits(Vec v) { HEADRACE_INT_LANES(__builtin_bit_cast(std::int32_t, v.lane[l])); }
inline Vec from_bits(Int v) { HEADRACE_LANES(__builtin_bit_cast(float, v.lane[l])); }
/// The nearest integers, ties to even. Magnitudes are below 2^22: adding 1.5 * 2^23 rounds there.
inline Int round_to_int(Vec v) {
  HEADRACE_INT_LANES(__builtin_bit_cast(std::int32_t, v.lane[l] + 12582912.0f) - 0x4b400000);
}
inline Vec to_float(Int v) { HEADRACE_LANES(static_cast<float>(v.lane[l])); }
inline std::uint32_t wrap(std::int32_t x) { return static_cast<std::uint32_t>(x); }
inline Int add(Int a, Int b) { HEADRACE_INT_LANES(static_cast<std::int32_t>(wrap(a.lane[l]) + wrap(b.lane[l]))); }
inline Int sub(Int a, Int b) { HEADRACE_INT_LANES(static_cast<std::int32_t>(wrap(a.lane[l]) - wrap(b.lane[l]))); }
inline Int shift_right_1(Int a) { HEADRACE_INT_LANES(a.lane[l] >> 1); }
inline Int shift_left_23(Int a) { HEADRACE_INT_LANES(static_cast<std::int32_t>(wrap(a.lane[l]) << 23)); }
inline Int shift_right_8(Int a) { HEADRACE_INT_LANES(a.lane[l] >> 8); }
inline Int times_256(Int a) { HEADRACE_INT_LANES(a.lane[l] * 256); }
inline Int absolute_bits(Vec v) { HEADRACE_INT_LANES(__builtin_bit_cast(std::int32_t, v.lane[l]) & 0x7fffffff); }
inline Int max_int(Int a, Int b) { HEADRACE_INT_LANES(a.lane[l] > b.lane[l] ? a.lane[l] : b.lane[l]); }
inline std::int32_t reduce_max(Int v) {
  std::int32_t largest = v.lane[0];
  for (int l = 1; l < 16; ++l) largest = v.lane[l] > largest ? v.lane[l] : largest;
  return largest;
}
inline std::int32_t reduce_sum(Int v) {
  std::int32_t sum = 0;
  for (int l = 0; l < 16; ++l) sum += v.lane[l];
  return sum;
}
inline Int load_i8(const std::byte* p) {
  std::int8_t code[16];
  memcpy(code, p, 16);
  HEADRACE_INT_LANES(code[l]);
}
/// The lowest byte of each lane.
inline void store_i8(std::byte* p, Int v) {
  for (int l = 0; l < 16; ++l) p[l] = static_cast<std::byte>(v.lane[l] & 0xff);
}

/// The low or high nibbles of 16 bytes; 16 exponents of 2^(exponent - 128), subnormal below 2.
inline Vec load_low_nibbles(const std::byte* p) { HEADRACE_LANES(static_cast<float>(static_cast<int>(p[l]) & 15)); }
inline Vec load_high_nibbles(const std::byte* p) { HEADRACE_LANES(static_cast<float>(static_cast<int>(p[l]) >> 4)); }
inline Vec load_e8m0(const std::byte* p) {
  Vec y;
  for (int l = 0; l < 16; ++l) {
    const auto exponent = static_cast<std::uint32_t>(p[l]);
    y.lane[l] = __builtin_bit_cast(float, exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23);
  }
  return y;
}
/// factor times the i32 at p, in every lane.
inline Int product_of(Int factor, const std::byte* p) {
  std::int32_t x = 0;
  memcpy(&x, p, 4);
  HEADRACE_INT_LANES(factor.lane[l] * x);
}

#undef HEADRACE_LANES
#undef HEADRACE_INT_LANES

}  // namespace headrace::kernels::HEADRACE_ISA
