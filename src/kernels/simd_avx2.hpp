// 16 lanes as two ymm registers: AVX2, FMA, F16C.
#pragma once

#include <immintrin.h>

namespace headrace::kernels::HEADRACE_ISA {

struct Vec {
  __m256 low, high;
};
struct Int {
  __m256i low, high;
};

inline constexpr int score_queries = 4;
inline constexpr int score_sums = 4;
inline constexpr int output_queries = 3;
inline constexpr int output_vectors = 2;
inline constexpr int float_rows = 3;

inline Vec set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, Vec v) {
  _mm256_storeu_ps(p, v.low);
  _mm256_storeu_ps(p + 8, v.high);
}
inline Vec load_partial(const float* p, std::int64_t n) {
  alignas(64) float lane[16] = {};
  for (int l = 0; l < 16 && l < n; ++l) lane[l] = p[l];
  return load(lane);
}
inline void store_partial(float* p, Vec v, std::int64_t n) {
  alignas(64) float lane[16];
  store(lane, v);
  for (int l = 0; l < 16 && l < n; ++l) p[l] = lane[l];
}
inline Vec add(Vec a, Vec b) { return {_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)}; }
inline Vec sub(Vec a, Vec b) { return {_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)}; }
inline Vec mul(Vec a, Vec b) { return {_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)}; }
inline Vec div(Vec a, Vec b) { return {_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)}; }
inline Vec fma(Vec a, Vec b, Vec c) {
  return {_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}
inline Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)}; }
inline Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.low, b.low), _mm256_min_ps(a.high, b.high)}; }

inline __m128i load_128(const std::byte* p) {
  __m128i v;
  memcpy(&v, p, 16);
  return v;
}
inline __m256i load_256(const std::byte* p) {
  __m256i v;
  memcpy(&v, p, 32);
  return v;
}
inline Vec load_f16(const std::byte* p) { return {_mm256_cvtph_ps(load_128(p)), _mm256_cvtph_ps(load_128(p + 16))}; }
inline void store_f16(std::byte* p, Vec v) {
  const __m128i low = _mm256_cvtps_ph(v.low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m128i high = _mm256_cvtps_ph(v.high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  memcpy(p, &low, 16);
  memcpy(p + 16, &high, 16);
}
inline Vec load_bf16(const std::byte* p) {
  const auto widen = [](const std::byte* half) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_128(half)), 16));
  };
  return {widen(p), widen(p + 16)};
}
inline Vec load_bf16_even(const std::byte* p) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(load_256(p), 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(load_256(p + 32), 16))};
}
inline Vec load_bf16_odd(const std::byte* p) {
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
  return {_mm256_castsi256_ps(_mm256_and_si256(load_256(p), mask)),
          _mm256_castsi256_ps(_mm256_and_si256(load_256(p + 32), mask))};
}

inline Int set1_int(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline Int bits(Vec v) { return {_mm256_castps_si256(v.low), _mm256_castps_si256(v.high)}; }
inline Vec from_bits(Int v) { return {_mm256_castsi256_ps(v.low), _mm256_castsi256_ps(v.high)}; }
inline Int round_to_int(Vec v) { return {_mm256_cvtps_epi32(v.low), _mm256_cvtps_epi32(v.high)}; }
inline Vec to_float(Int v) { return {_mm256_cvtepi32_ps(v.low), _mm256_cvtepi32_ps(v.high)}; }
inline Int add(Int a, Int b) { return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)}; }
inline Int sub(Int a, Int b) { return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)}; }
inline Int shift_right_1(Int a) { return {_mm256_srai_epi32(a.low, 1), _mm256_srai_epi32(a.high, 1)}; }
inline Int shift_left_23(Int a) { return {_mm256_slli_epi32(a.low, 23), _mm256_slli_epi32(a.high, 23)}; }
inline Int shift_right_8(Int a) { return {_mm256_srai_epi32(a.low, 8), _mm256_srai_epi32(a.high, 8)}; }
inline Int times_256(Int a) { return {_mm256_slli_epi32(a.low, 8), _mm256_slli_epi32(a.high, 8)}; }
inline Int absolute_bits(Vec v) {
  const __m256i mask = _mm256_set1_epi32(0x7fffffff);
  return {_mm256_and_si256(_mm256_castps_si256(v.low), mask), _mm256_and_si256(_mm256_castps_si256(v.high), mask)};
}
inline Int max_int(Int a, Int b) { return {_mm256_max_epi32(a.low, b.low), _mm256_max_epi32(a.high, b.high)}; }
inline std::int32_t reduce_max(Int v) {
  alignas(32) std::int32_t lane[8];
  const __m256i both = _mm256_max_epi32(v.low, v.high);
  memcpy(lane, &both, 32);
  std::int32_t largest = lane[0];
  for (int l = 1; l < 8; ++l) largest = lane[l] > largest ? lane[l] : largest;
  return largest;
}
inline std::int32_t reduce_sum(Int v) {
  alignas(32) std::int32_t lane[8];
  const __m256i both = _mm256_add_epi32(v.low, v.high);
  memcpy(lane, &both, 32);
  std::int32_t sum = 0;
  for (int l = 0; l < 8; ++l) sum += lane[l];
  return sum;
}
inline Int load_i8(const std::byte* p) {
  const __m128i codes = load_128(p);
  return {_mm256_cvtepi8_epi32(codes), _mm256_cvtepi8_epi32(_mm_srli_si128(codes, 8))};
}
inline void store_i8(std::byte* p, Int v) {
  const char no = -1;
  const __m256i first = _mm256_setr_epi8(0, 4, 8, 12, no, no, no, no, no, no, no, no, no, no, no, no,  //
                                         0, 4, 8, 12, no, no, no, no, no, no, no, no, no, no, no, no);
  const __m256i second = _mm256_setr_epi8(no, no, no, no, 0, 4, 8, 12, no, no, no, no, no, no, no, no,  //
                                          no, no, no, no, 0, 4, 8, 12, no, no, no, no, no, no, no, no);
  const __m256i both = _mm256_or_si256(_mm256_shuffle_epi8(v.low, first), _mm256_shuffle_epi8(v.high, second));
  const __m256i in_order = _mm256_permutevar8x32_epi32(both, _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5));
  const __m128i codes = _mm256_castsi256_si128(in_order);
  memcpy(p, &codes, 16);
}

inline Vec floats_of_i8(__m128i bytes) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
inline Vec load_low_nibbles(const std::byte* p) { return floats_of_i8(_mm_and_si128(load_128(p), _mm_set1_epi8(15))); }
inline Vec load_high_nibbles(const std::byte* p) {
  return floats_of_i8(_mm_and_si128(_mm_srli_epi16(load_128(p), 4), _mm_set1_epi8(15)));
}
/// (exponent - 1) << 23, and below 2, where that is too small, 2^21 << exponent: 2^21 * (exponent + 1), at most 2^22.
inline __m256 floats_of_e8m0(__m256i exponent) {
  const __m256i normal = _mm256_slli_epi32(_mm256_sub_epi32(exponent, _mm256_set1_epi32(1)), 23);
  const __m256i grown = _mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(1)), 21);
  return _mm256_castsi256_ps(_mm256_max_epi32(normal, _mm256_min_epi32(grown, _mm256_set1_epi32(1 << 22))));
}
inline Vec load_e8m0(const std::byte* p) {
  const __m128i bytes = load_128(p);
  return {floats_of_e8m0(_mm256_cvtepu8_epi32(bytes)), floats_of_e8m0(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
}
inline Int product_of(Int factor, const std::byte* p) {
  std::int32_t x = 0;
  memcpy(&x, p, 4);
  return set1_int(_mm256_cvtsi256_si32(factor.low) * x);  // all lanes of factor are equal
}

}  // namespace headrace::kernels::HEADRACE_ISA
