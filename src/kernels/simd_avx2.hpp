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
/// To nearest, ties to even; magnitudes below 2^22.
inline Int round_to_int(Vec v) { return {_mm256_cvtps_epi32(v.low), _mm256_cvtps_epi32(v.high)}; }
inline Vec to_float(Int v) { return {_mm256_cvtepi32_ps(v.low), _mm256_cvtepi32_ps(v.high)}; }
inline Int add(Int a, Int b) { return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)}; }
inline Int sub(Int a, Int b) { return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)}; }
inline Int shift_right_1(Int a) { return {_mm256_srai_epi32(a.low, 1), _mm256_srai_epi32(a.high, 1)}; }
inline Int shift_left_23(Int a) { return {_mm256_slli_epi32(a.low, 23), _mm256_slli_epi32(a.high, 23)}; }
inline Int times_255(Int a) {
  return {_mm256_sub_epi32(_mm256_slli_epi32(a.low, 8), a.low), _mm256_sub_epi32(_mm256_slli_epi32(a.high, 8), a.high)};
}
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
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(v.low, v.high), 0xd8);
  const __m128i codes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  memcpy(p, &codes, 16);
}

// ---- codes of a group of 32 ----------------------------------------------------------------------------------------

struct Lines {
  __m256i line[8][2];
};

inline void unpack_nibbles(const std::byte* p, Lines& lines) {
  const __m256i mask = _mm256_set1_epi8(0x0f);
  for (int l = 0; l < 4; ++l) {
    for (int h = 0; h < 2; ++h) {
      const __m256i both = load_256(p + 64 * l + 32 * h);
      lines.line[2 * l][h] = _mm256_and_si256(both, mask);
      lines.line[2 * l + 1][h] = _mm256_and_si256(_mm256_srli_epi16(both, 4), mask);
    }
  }
}
inline void add_fifth_bits(const std::byte* masks, Lines& lines) {
  // Each byte of a line takes its mask's byte, then tests its own bit in it.
  const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,  //
                                          2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
  const __m256i sixteen = _mm256_set1_epi8(16);
  for (int j = 0; j < 8; ++j) {
    for (int h = 0; h < 2; ++h) {
      std::int32_t word = 0;
      memcpy(&word, masks + 8 * j + 4 * h, 4);
      const __m256i bytes = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(word), spread), bit);
      const __m256i set = _mm256_and_si256(_mm256_cmpeq_epi8(bytes, bit), sixteen);
      lines.line[j][h] = _mm256_or_si256(lines.line[j][h], set);
    }
  }
}
inline void copy_bytes(const std::byte* p, Lines& lines) {
  for (int j = 0; j < 8; ++j) {
    for (int h = 0; h < 2; ++h) lines.line[j][h] = load_256(p + 64 * j + 32 * h);
  }
}

/// vpmaddubsw adds two products in int16 and saturates. Codes below 16: all 8 lines fit one int16 sum (15 * 127 * 16 =
/// 30480); below 32: four lines do (31 * 127 * 8 = 31496); wider codes are made signed by subtracting 128 and
/// multiplied as |code| * (activation with code's sign) (128 * 127 * 2 = 32512), the 128 coming back through the sum of
/// activations.
template <int code_bits>
inline Int dot(const Lines& lines, const std::int8_t* activations, std::int32_t start) {
  const __m256i ones = _mm256_set1_epi16(1);
  Int sum = set1_int(start);
  __m256i* const target[2] = {&sum.low, &sum.high};
  std::int32_t word[8];
  memcpy(word, activations, 32);
  if constexpr (code_bits <= 5) {
    constexpr int run = code_bits <= 4 ? 8 : 4;
    for (int h = 0; h < 2; ++h) {
      for (int first = 0; first < 8; first += run) {
        __m256i partial = _mm256_maddubs_epi16(lines.line[first][h], _mm256_set1_epi32(word[first]));
        for (int j = first + 1; j < first + run; ++j) {
          partial = _mm256_add_epi16(partial, _mm256_maddubs_epi16(lines.line[j][h], _mm256_set1_epi32(word[j])));
        }
        *target[h] = _mm256_add_epi32(*target[h], _mm256_madd_epi16(partial, ones));
      }
    }
  } else {
    __m256i total = _mm256_setzero_si256();
    const __m256i flip = _mm256_set1_epi8(static_cast<char>(-128));
    for (int j = 0; j < 8; ++j) {
      const __m256i activation = _mm256_set1_epi32(word[j]);
      const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), activation);
      total = _mm256_add_epi32(total, _mm256_madd_epi16(pairs, ones));
      for (int h = 0; h < 2; ++h) {
        const __m256i code = _mm256_xor_si256(lines.line[j][h], flip);
        const __m256i products = _mm256_maddubs_epi16(_mm256_abs_epi8(code), _mm256_sign_epi8(activation, code));
        *target[h] = _mm256_add_epi32(*target[h], _mm256_madd_epi16(products, ones));
      }
    }
    const __m256i back = _mm256_slli_epi32(total, 7);
    sum.low = _mm256_add_epi32(sum.low, back);
    sum.high = _mm256_add_epi32(sum.high, back);
  }
  return sum;
}

}  // namespace headrace::kernels::HEADRACE_ISA
