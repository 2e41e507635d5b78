// Lines of codes as two ymm registers (see codes.hpp).
#pragma once

namespace headrace::kernels::HEADRACE_ISA {

struct Line {
  __m256i half[2];
};

/// Dots with digits go by halves of lines: 8 of them fit the registers, with sums and digits, and 8 lines do not.
struct HalfLine {
  __m256i v;
};
/// Codes below 64 are multiplied with digits, wider ones with activations as int16.
template <int level_bits>
inline constexpr int line_parts = level_bits <= 6 ? 2 : 1;
template <int parts>
struct PartOf {
  using Type = Line;
};
template <>
struct PartOf<2> {
  using Type = HalfLine;
};
template <int level_bits>
using Part = typename PartOf<line_parts<level_bits>>::Type;

template <class L>
inline L load_codes(const std::byte* p) {
  if constexpr (sizeof(L) == sizeof(HalfLine)) {
    return {load_256(p)};
  } else {
    return {{load_256(p), load_256(p + 32)}};
  }
}
inline void store_line(void* p, const Line& line) {
  memcpy(p, &line.half[0], 32);
  memcpy(static_cast<std::byte*>(p) + 32, &line.half[1], 32);
}

// Shifts are of 16 bits: what crosses bytes, the masks take away.
template <int shift, int mask>
inline HalfLine bits_of(const HalfLine& x) {
  const __m256i m = _mm256_set1_epi8(mask);
  if constexpr (shift == 0) return {_mm256_and_si256(x.v, m)};
  return {_mm256_and_si256(_mm256_srli_epi16(x.v, shift), m)};
}
template <int shift, int mask>
inline Line bits_of(const Line& x) {
  return {{bits_of<shift, mask>(HalfLine{x.half[0]}).v, bits_of<shift, mask>(HalfLine{x.half[1]}).v}};
}

template <int from, int to, int mask>
inline HalfLine add_bits(const HalfLine& line, const HalfLine& plane) {
  __m256i bits = plane.v;
  if constexpr (to > from) bits = _mm256_slli_epi16(bits, to - from);
  if constexpr (to < from) bits = _mm256_srli_epi16(bits, from - to);
  return {_mm256_or_si256(line.v, _mm256_and_si256(bits, _mm256_set1_epi8(static_cast<char>(mask << to))))};
}
template <int from, int to, int mask>
inline Line add_bits(const Line& line, const Line& plane) {
  return {{add_bits<from, to, mask>(HalfLine{line.half[0]}, HalfLine{plane.half[0]}).v,
           add_bits<from, to, mask>(HalfLine{line.half[1]}, HalfLine{plane.half[1]}).v}};
}

struct Levels {
  __m256i level;
};
inline Levels load_levels(const std::uint8_t* p) {
  __m128i level;
  memcpy(&level, p, 16);
  return {_mm256_broadcastsi128_si256(level)};
}
inline HalfLine look_up(const Levels& levels, const HalfLine& x) { return {_mm256_shuffle_epi8(levels.level, x.v)}; }
inline Line look_up(const Levels& levels, const Line& x) {
  return {{_mm256_shuffle_epi8(levels.level, x.half[0]), _mm256_shuffle_epi8(levels.level, x.half[1])}};
}

/// Between the parts of lines: loads behind it are not those before it. GCC would else keep the broadcast digits of the
/// first part for the second, in more registers than there are.
inline void keep_apart() { asm volatile("" ::: "memory"); }

/// 4 activation digits for every output. (Straight from where they lie: a copy on the stack would be waited for.)
inline __m256i four_digits(const std::byte* p) {
  std::int32_t word = 0;
  memcpy(&word, p, 4);
  return _mm256_set1_epi32(word);
}

template <int part>
inline __m256i& part_of(Int& sums) {
  if constexpr (part == 0) return sums.low;
  return sums.high;
}

template <int level_bits, int rows>
struct Digits {
  static constexpr bool as_words = line_parts<level_bits> == 1;
  const std::byte* x[rows];
  std::int32_t even[as_words ? rows : 1][8];  ///< pairs of k = 4 j and 4 j + 2
  std::int32_t odd[as_words ? rows : 1][8];   ///< of 4 j + 1 and 4 j + 3

  void set(int r, const std::byte* digits) {
    x[r] = digits;
    if constexpr (as_words) {
      const __m256i high = load_256(digits);
      const __m256i low = load_256(digits + 32);
      const __m256i low_even = _mm256_srai_epi16(_mm256_slli_epi16(low, 8), 8);
      const __m256i even_words = _mm256_add_epi16(_mm256_slli_epi16(high, 8), low_even);
      const __m256i high_odd = _mm256_andnot_si256(_mm256_set1_epi16(0xff), high);
      const __m256i odd_words = _mm256_add_epi16(high_odd, _mm256_srai_epi16(low, 8));
      memcpy(even[r], &even_words, 32);
      memcpy(odd[r], &odd_words, 32);
      asm volatile("" : "+m"(even[r]), "+m"(odd[r]));  // or GCC takes the words out of registers, one by one
    }
  }
};

/// Codes below 64: vpmaddubsw with each digit. It adds two products in int16 and saturates, so `fitting` says how many
/// lines go into one int16 sum: all 8 of 4 bits (15 * 128 * 16 = 30720), 4 of 5 (31 * 128 * 8 = 31744), 2 of 6 (63 *
/// 128 * 4 = 32256). Sums of the high digits are multiplied by 256 on their way to int32.
template <int level_bits, int first, int count, int part, int rows>
inline void dots_of_digits(const HalfLine (&line)[8], const Digits<level_bits, rows>& digits, Int (&sums)[rows]) {
  constexpr int fitting = level_bits <= 4 ? 8 : level_bits == 5 ? 4 : 2;
  constexpr int run = fitting < count ? fitting : count;
  const __m256i ones = _mm256_set1_epi16(1);
  const __m256i base = _mm256_set1_epi16(a16_base);
  keep_apart();
#pragma GCC unroll 4
  for (int r = 0; r < rows; ++r) {
    const std::byte* high = digits.x[r];
    const std::byte* low = digits.x[r] + 32;
    __m256i total = part_of<part>(sums[r]);
#pragma GCC unroll 4
    for (int from = first; from < first + count; from += run) {
      __m256i high_sum = _mm256_maddubs_epi16(line[from].v, four_digits(high + 4 * from));
      __m256i low_sum = _mm256_maddubs_epi16(line[from].v, four_digits(low + 4 * from));
#pragma GCC unroll 8
      for (int j = from + 1; j < from + run; ++j) {
        high_sum = _mm256_add_epi16(high_sum, _mm256_maddubs_epi16(line[j].v, four_digits(high + 4 * j)));
        low_sum = _mm256_add_epi16(low_sum, _mm256_maddubs_epi16(line[j].v, four_digits(low + 4 * j)));
      }
      total = _mm256_add_epi32(total, _mm256_madd_epi16(high_sum, base));
      total = _mm256_add_epi32(total, _mm256_madd_epi16(low_sum, ones));
    }
    part_of<part>(sums[r]) = total;
  }
}

/// Wider codes: vpmaddwd, even and odd k apart. No sum can overflow: 2 * 255 * 32512 * 16 < 2^31.
template <int level_bits, int first, int count, int rows>
inline void dots_of_words(const Line (&line)[8], const Digits<level_bits, rows>& digits, Int (&sums)[rows]) {
  const __m256i low_bytes = _mm256_set1_epi16(0xff);
#pragma GCC unroll 8
  for (int j = first; j < first + count; ++j) {
    const __m256i even[2] = {_mm256_and_si256(line[j].half[0], low_bytes),
                             _mm256_and_si256(line[j].half[1], low_bytes)};
    const __m256i odd[2] = {_mm256_srli_epi16(line[j].half[0], 8), _mm256_srli_epi16(line[j].half[1], 8)};
    keep_apart();
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const __m256i even_words = _mm256_set1_epi32(digits.even[r][j]);
      sums[r].low = _mm256_add_epi32(sums[r].low, _mm256_madd_epi16(even[0], even_words));
      sums[r].high = _mm256_add_epi32(sums[r].high, _mm256_madd_epi16(even[1], even_words));
      const __m256i odd_words = _mm256_set1_epi32(digits.odd[r][j]);
      sums[r].low = _mm256_add_epi32(sums[r].low, _mm256_madd_epi16(odd[0], odd_words));
      sums[r].high = _mm256_add_epi32(sums[r].high, _mm256_madd_epi16(odd[1], odd_words));
    }
  }
}

template <int level_bits, int first, int count, int part, int rows>
inline void dots(const Part<level_bits> (&line)[8], const Digits<level_bits, rows>& digits, Int (&sums)[rows]) {
  if constexpr (Digits<level_bits, rows>::as_words) {
    dots_of_words<level_bits, first, count>(line, digits, sums);
  } else {
    dots_of_digits<level_bits, first, count, part>(line, digits, sums);
  }
}

inline void transpose(const std::uint8_t* const (&rows)[16], Line (&line)[8]) {
  for (int h = 0; h < 2; ++h) {
    __m256i row[8];
    for (int o = 0; o < 8; ++o) memcpy(&row[o], rows[8 * h + o], 32);
    __m256i four[2][4];  // rows 0 .. 3 and 4 .. 7: words w and w + 4
    for (int q = 0; q < 2; ++q) {
      const __m256i* r = row + 4 * q;
      const __m256i low01 = _mm256_unpacklo_epi32(r[0], r[1]);
      const __m256i high01 = _mm256_unpackhi_epi32(r[0], r[1]);
      const __m256i low23 = _mm256_unpacklo_epi32(r[2], r[3]);
      const __m256i high23 = _mm256_unpackhi_epi32(r[2], r[3]);
      four[q][0] = _mm256_unpacklo_epi64(low01, low23);
      four[q][1] = _mm256_unpackhi_epi64(low01, low23);
      four[q][2] = _mm256_unpacklo_epi64(high01, high23);
      four[q][3] = _mm256_unpackhi_epi64(high01, high23);
    }
    for (int w = 0; w < 4; ++w) {
      line[w].half[h] = _mm256_permute2x128_si256(four[0][w], four[1][w], 0x20);
      line[w + 4].half[h] = _mm256_permute2x128_si256(four[0][w], four[1][w], 0x31);
    }
  }
}
inline void store_halves(void* p, const Line& line) {
  const __m256i mask = _mm256_set1_epi32(0xffff);
  const __m256i lower = _mm256_packus_epi32(_mm256_and_si256(line.half[0], mask), _mm256_and_si256(line.half[1], mask));
  const __m256i upper = _mm256_packus_epi32(_mm256_srli_epi32(line.half[0], 16), _mm256_srli_epi32(line.half[1], 16));
  store_line(p, {{_mm256_permute4x64_epi64(lower, 0xd8), _mm256_permute4x64_epi64(upper, 0xd8)}});
}
inline void store_quarters(void* p, const Line& line) {
  const __m256i by_byte = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15,  //
                                           0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m256i pairs = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  // 8 bytes of each quarter from a half.
  const __m256i first = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(line.half[0], by_byte), pairs);
  const __m256i second = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(line.half[1], by_byte), pairs);
  const __m256i even = _mm256_unpacklo_epi64(first, second);  // quarters 0 and 2
  const __m256i odd = _mm256_unpackhi_epi64(first, second);
  store_line(p, {{_mm256_permute2x128_si256(even, odd, 0x20), _mm256_permute2x128_si256(even, odd, 0x31)}});
}

}  // namespace headrace::kernels::HEADRACE_ISA
