// Lines of codes in plain C++ (see codes.hpp).
#pragma once

namespace headrace::kernels::HEADRACE_ISA {

/// 64 bytes: codes of 16 outputs x 4 k, or a plane of their bits.
struct Line {
  std::uint8_t byte[64];
};

/// What dots take at once: a line or a half of one.
template <int level_bits>
using Part = Line;
template <int level_bits>
inline constexpr int line_parts = 1;

template <class L>
inline L load_codes(const std::byte* p) {
  L line;
  memcpy(line.byte, p, 64);
  return line;
}
inline void store_line(void* p, const Line& line) { memcpy(p, line.byte, 64); }

/// (x >> shift) & mask, of every byte.
template <int shift, int mask>
inline Line bits_of(const Line& x) {
  Line y;
  for (int i = 0; i < 64; ++i) y.byte[i] = static_cast<std::uint8_t>((x.byte[i] >> shift) & mask);
  return y;
}

/// line | ((plane >> from) & mask) << to, of every byte.
template <int from, int to, int mask>
inline Line add_bits(const Line& line, const Line& plane) {
  Line y;
  for (int i = 0; i < 64; ++i) {
    y.byte[i] = static_cast<std::uint8_t>(line.byte[i] | ((plane.byte[i] >> from) & mask) << to);
  }
  return y;
}

/// A table of 16 bytes, and table[x] of every byte.
struct Levels {
  std::uint8_t level[16];
};
inline Levels load_levels(const std::uint8_t* p) {
  Levels levels;
  memcpy(levels.level, p, 16);
  return levels;
}
inline Line look_up(const Levels& levels, const Line& x) {
  Line y;
  for (int i = 0; i < 64; ++i) y.byte[i] = levels.level[x.byte[i]];
  return y;
}

/// The digits of `rows` activations for a unit, as dots read them; x[r]: 32 high ones, then 32 low ones.
template <int level_bits, int rows>
struct Digits {
  const std::byte* x[rows];
  void set(int r, const std::byte* digits) { x[r] = digits; }
};

/// start + sum over k of lines [first, first + count) of code * activation, exactly, for 16 outputs and each of `rows`
/// activations. level_bits says how large the codes may be. Of lines in parts, only the outputs of this part.
template <int level_bits, int first, int count, int part, int rows>
inline void dots(const Part<level_bits> (&line)[8], const Digits<level_bits, rows>& digits, Int (&sums)[rows]) {
  for (int r = 0; r < rows; ++r) {
    std::int8_t digit[64];
    memcpy(digit, digits.x[r], 64);
    for (int j = first; j < first + count; ++j) {
      for (int i = 0; i < 4; ++i) {
        const int activation = a16_base * digit[4 * j + i] + digit[32 + 4 * j + i];
        for (int o = 0; o < 16; ++o) sums[r].lane[o] += line[j].byte[4 * o + i] * activation;
      }
    }
  }
}

/// 8 words of 4 bytes from each of 16 rows to lines [word][row].
inline void transpose(const std::uint8_t* const (&rows)[16], Line (&line)[8]) {
  for (int o = 0; o < 16; ++o) {
    for (int j = 0; j < 8; ++j) memcpy(line[j].byte + 4 * o, rows[o] + 4 * j, 4);
  }
}
/// The lower halves of a line's 16 words, then the upper ones.
inline void store_halves(void* p, const Line& line) {
  std::uint8_t bytes[64];
  for (int o = 0; o < 16; ++o) {
    memcpy(bytes + 2 * o, line.byte + 4 * o, 2);
    memcpy(bytes + 32 + 2 * o, line.byte + 4 * o + 2, 2);
  }
  memcpy(p, bytes, 64);
}
/// The lowest bytes of a line's 16 words, then the next ones, and so on.
inline void store_quarters(void* p, const Line& line) {
  std::uint8_t bytes[64];
  for (int i = 0; i < 4; ++i) {
    for (int o = 0; o < 16; ++o) bytes[16 * i + o] = line.byte[4 * o + i];
  }
  memcpy(p, bytes, 64);
}

}  // namespace headrace::kernels::HEADRACE_ISA
