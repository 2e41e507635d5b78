// 16 lanes as one zmm register: AVX-512 F, BW, VL, DQ.
#pragma once

#include <immintrin.h>

namespace headrace::kernels::HEADRACE_ISA {

using Vec = __m512;
struct Int {  // a type of its own: __m512i would overload with every other integer vector
  __m512i v;
};

inline constexpr int score_queries = 8;
inline constexpr int score_sums = 16;
inline constexpr int output_queries = 6;
inline constexpr int output_vectors = 4;
inline constexpr int float_rows = 8;

inline __mmask16 first_lanes(std::int64_t n) {
  return static_cast<__mmask16>(n >= 16 ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1u);
}

inline Vec set1(float x) { return _mm512_set1_ps(x); }
inline Vec zero() { return _mm512_setzero_ps(); }
inline Vec load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
inline Vec load_partial(const float* p, std::int64_t n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
inline void store_partial(float* p, Vec v, std::int64_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), v); }
inline Vec add(Vec a, Vec b) { return _mm512_add_ps(a, b); }
inline Vec sub(Vec a, Vec b) { return _mm512_sub_ps(a, b); }
inline Vec mul(Vec a, Vec b) { return _mm512_mul_ps(a, b); }
inline Vec div(Vec a, Vec b) { return _mm512_div_ps(a, b); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }
inline Vec max(Vec a, Vec b) { return _mm512_max_ps(a, b); }
inline Vec min(Vec a, Vec b) { return _mm512_min_ps(a, b); }

inline Vec load_f16(const std::byte* p) { return _mm512_cvtph_ps(_mm256_loadu_epi16(p)); }
inline void store_f16(std::byte* p, Vec v) {
  _mm256_storeu_epi16(p, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline Vec load_bf16(const std::byte* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_epi16(p)), 16));
}
inline Vec load_bf16_even(const std::byte* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_loadu_si512(p), 16));
}
inline Vec load_bf16_odd(const std::byte* p) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_loadu_si512(p), _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
}

inline Int set1_int(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
inline Int bits(Vec v) { return {_mm512_castps_si512(v)}; }
inline Vec from_bits(Int a) { return _mm512_castsi512_ps(a.v); }
inline Int round_to_int(Vec v) { return {_mm512_cvtps_epi32(v)}; }
inline Vec to_float(Int a) { return _mm512_cvtepi32_ps(a.v); }
inline Int add(Int a, Int b) { return {_mm512_add_epi32(a.v, b.v)}; }
inline Int sub(Int a, Int b) { return {_mm512_sub_epi32(a.v, b.v)}; }
inline Int shift_right_1(Int a) { return {_mm512_srai_epi32(a.v, 1)}; }
inline Int shift_left_23(Int a) { return {_mm512_slli_epi32(a.v, 23)}; }
inline Int shift_right_8(Int a) { return {_mm512_srai_epi32(a.v, 8)}; }
inline Int times_256(Int a) { return {_mm512_slli_epi32(a.v, 8)}; }
inline Int absolute_bits(Vec v) { return {_mm512_and_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x7fffffff))}; }
inline Int max_int(Int a, Int b) { return {_mm512_max_epi32(a.v, b.v)}; }
inline std::int32_t reduce_max(Int a) { return _mm512_reduce_max_epi32(a.v); }
inline std::int32_t reduce_sum(Int a) { return _mm512_reduce_add_epi32(a.v); }
inline Int load_i8(const std::byte* p) {
  __m128i codes;
  memcpy(&codes, p, 16);
  return {_mm512_cvtepi8_epi32(codes)};
}
inline void store_i8(std::byte* p, Int a) {
  const __m128i codes = _mm512_cvtepi32_epi8(a.v);
  memcpy(p, &codes, 16);
}

/// One permutation of 16 floats, which takes the low 4 bits of its indices, for a mask and a conversion.
inline Vec floats_of_nibbles(__m512i index) {
  return _mm512_permutexvar_ps(index, _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}
inline Vec load_low_nibbles(const std::byte* p) { return floats_of_nibbles(_mm512_cvtepu8_epi32(_mm_loadu_epi8(p))); }
inline Vec load_high_nibbles(const std::byte* p) {
  return floats_of_nibbles(_mm512_srli_epi32(_mm512_cvtepu8_epi32(_mm_loadu_epi8(p)), 4));
}
/// (exponent - 1) << 23, and below 2, where that is too small, 2^21 << exponent: 2^21 * (exponent + 1), at most 2^22.
inline Vec load_e8m0(const std::byte* p) {
  const __m512i exponent = _mm512_cvtepu8_epi32(_mm_loadu_epi8(p));
  const __m512i normal = _mm512_slli_epi32(_mm512_sub_epi32(exponent, _mm512_set1_epi32(1)), 23);
  const __m512i grown = _mm512_slli_epi32(_mm512_add_epi32(exponent, _mm512_set1_epi32(1)), 21);
  return _mm512_castsi512_ps(_mm512_max_epi32(normal, _mm512_min_epi32(grown, _mm512_set1_epi32(1 << 22))));
}
inline Int product_of(Int factor, const std::byte* p) {
  std::int32_t x = 0;
  memcpy(&x, p, 4);
  return {_mm512_mullo_epi32(factor.v, _mm512_set1_epi32(x))};
}

}  // namespace headrace::kernels::HEADRACE_ISA
