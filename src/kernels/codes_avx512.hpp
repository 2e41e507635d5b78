// Lines of codes as one zmm register, with VNNI dots (see codes.hpp).
#pragma once

namespace headrace::kernels::HEADRACE_ISA {

struct Line {
  __m512i v;
};

template <int level_bits>
using Part = Line;
template <int level_bits>
inline constexpr int line_parts = 1;

template <class L>
inline L load_codes(const std::byte* p) {
  return {_mm512_loadu_si512(p)};
}
inline void store_line(void* p, const Line& line) { _mm512_storeu_si512(p, line.v); }

// Shifts are of 16 bits: what crosses bytes, the masks take away.
template <int shift, int mask>
inline Line bits_of(const Line& x) {
  const __m512i m = _mm512_set1_epi8(mask);
  if constexpr (shift == 0) return {_mm512_and_si512(x.v, m)};
  return {_mm512_and_si512(_mm512_srli_epi16(x.v, shift), m)};
}

template <int from, int to, int mask>
inline Line add_bits(const Line& line, const Line& plane) {
  __m512i bits = plane.v;
  if constexpr (to > from) bits = _mm512_slli_epi16(bits, to - from);
  if constexpr (to < from) bits = _mm512_srli_epi16(bits, from - to);
  const __m512i m = _mm512_set1_epi8(static_cast<char>(mask << to));
  return {_mm512_ternarylogic_epi32(line.v, bits, m, 0xf8)};  // line | (bits & m)
}

struct Levels {
  __m512i level;
};
inline Levels load_levels(const std::uint8_t* p) {
  __m128i level;
  memcpy(&level, p, 16);
  return {_mm512_broadcast_i32x4(level)};
}
inline Line look_up(const Levels& levels, const Line& x) { return {_mm512_shuffle_epi8(levels.level, x.v)}; }

/// 4 activation digits for every output: becomes the broadcast operand of vpdpbusd.
inline __m512i four_digits(const std::byte* p) {
  std::int32_t word = 0;
  memcpy(&word, p, 4);
  return _mm512_set1_epi32(word);
}

template <int level_bits, int rows>
struct Digits {
  const std::byte* x[rows];
  void set(int r, const std::byte* digits) { x[r] = digits; }
};

template <int level_bits, int first, int count, int part, int rows>
inline void dots(const Part<level_bits> (&line)[8], const Digits<level_bits, rows>& digits, Int (&sums)[rows]) {
  __m512i high[rows];
  for (int r = 0; r < rows; ++r) high[r] = _mm512_setzero_si512();
#pragma GCC unroll 8
  for (int j = first; j < first + count; ++j) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      high[r] = _mm512_dpbusd_epi32(high[r], line[j].v, four_digits(digits.x[r] + 4 * j));
      sums[r].v = _mm512_dpbusd_epi32(sums[r].v, line[j].v, four_digits(digits.x[r] + 32 + 4 * j));
    }
  }
  for (int r = 0; r < rows; ++r) sums[r] = add(times_256({high[r]}), sums[r]);
}

inline void transpose(const std::uint8_t* const (&rows)[16], Line (&line)[8]) {
  __m512i row[8];  // o and o + 8
  for (int o = 0; o < 8; ++o) {
    __m256i low;
    __m256i high;
    memcpy(&low, rows[o], 32);
    memcpy(&high, rows[o + 8], 32);
    row[o] = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
  __m512i four[2][4];  // rows 0 .. 3 and 4 .. 7: words w and w + 4
  for (int q = 0; q < 2; ++q) {
    const __m512i* r = row + 4 * q;
    const __m512i low01 = _mm512_unpacklo_epi32(r[0], r[1]);
    const __m512i high01 = _mm512_unpackhi_epi32(r[0], r[1]);
    const __m512i low23 = _mm512_unpacklo_epi32(r[2], r[3]);
    const __m512i high23 = _mm512_unpackhi_epi32(r[2], r[3]);
    four[q][0] = _mm512_unpacklo_epi64(low01, low23);
    four[q][1] = _mm512_unpackhi_epi64(low01, low23);
    four[q][2] = _mm512_unpacklo_epi64(high01, high23);
    four[q][3] = _mm512_unpackhi_epi64(high01, high23);
  }
  const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
  const __m512i second = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
  for (int w = 0; w < 4; ++w) {
    line[w].v = _mm512_permutex2var_epi64(four[0][w], first, four[1][w]);
    line[w + 4].v = _mm512_permutex2var_epi64(four[0][w], second, four[1][w]);
  }
}
inline void store_halves(void* p, const Line& line) {
  const __m256i lower = _mm512_cvtepi32_epi16(line.v);
  const __m256i upper = _mm512_cvtepi32_epi16(_mm512_srli_epi32(line.v, 16));
  store_line(p, {_mm512_inserti64x4(_mm512_castsi256_si512(lower), upper, 1)});
}
inline void store_quarters(void* p, const Line& line) {
  const __m512i by_byte = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const __m512i by_quarter = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  store_line(p, {_mm512_permutexvar_epi32(by_quarter, _mm512_shuffle_epi8(line.v, by_byte))});
}

}  // namespace headrace::kernels::HEADRACE_ISA
