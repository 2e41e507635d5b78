// The codes of grouped Layouts: a unit's bytes to its 8 lines of codes, for every instruction set; and, by instruction
// set, the dots of these lines with activations.
#pragma once

#include "kernels/isa.hpp"

#if defined(HEADRACE_ISA_AVX512)
#include "kernels/codes_avx512.hpp"
#elif defined(HEADRACE_ISA_AVX2)
#include "kernels/codes_avx2.hpp"
#else
#include "kernels/codes_portable.hpp"
#endif

namespace headrace::kernels::HEADRACE_ISA {

/// A unit's bytes (layout.hpp) to code lines j = 0 .. 7, or to the same part of each of them.
template <int code_bits, class L>
inline void unpack(const std::byte* p, L (&line)[8]) {
  static_assert(code_bits >= 2 && code_bits <= 8 && code_bits != 7);
  L in[code_bits];
  for (int l = 0; l < code_bits; ++l) in[l] = load_codes<L>(p + 64 * l);
  if constexpr (code_bits == 2) {
    for (int l = 0; l < 2; ++l) {
      line[4 * l] = bits_of<0, 3>(in[l]);
      line[4 * l + 1] = bits_of<2, 3>(in[l]);
      line[4 * l + 2] = bits_of<4, 3>(in[l]);
      line[4 * l + 3] = bits_of<6, 3>(in[l]);
    }
  } else if constexpr (code_bits == 3) {
    for (int l = 0; l < 3; ++l) {
      line[2 * l] = bits_of<0, 7>(in[l]);
      line[2 * l + 1] = bits_of<3, 7>(in[l]);
    }
    line[6] = add_bits<6, 2, 1>(bits_of<6, 3>(in[0]), in[2]);
    line[7] = add_bits<7, 2, 1>(bits_of<6, 3>(in[1]), in[2]);
  } else if constexpr (code_bits == 4) {
    for (int l = 0; l < 4; ++l) {
      line[2 * l] = bits_of<0, 15>(in[l]);
      line[2 * l + 1] = bits_of<4, 15>(in[l]);
    }
  } else if constexpr (code_bits == 5) {
    for (int l = 0; l < 5; ++l) line[l] = bits_of<0, 31>(in[l]);
    line[5] = add_bits<5, 3, 3>(bits_of<5, 7>(in[0]), in[1]);
    line[6] = add_bits<5, 3, 3>(bits_of<5, 7>(in[2]), in[3]);
    line[7] = add_bits<7, 4, 1>(add_bits<7, 3, 1>(bits_of<5, 7>(in[4]), in[1]), in[3]);
  } else if constexpr (code_bits == 6) {
    for (int l = 0; l < 6; ++l) line[l] = bits_of<0, 63>(in[l]);
    line[6] = add_bits<6, 4, 3>(add_bits<6, 2, 3>(bits_of<6, 3>(in[0]), in[1]), in[2]);
    line[7] = add_bits<6, 4, 3>(add_bits<6, 2, 3>(bits_of<6, 3>(in[3]), in[4]), in[5]);
  } else {
    for (int l = 0; l < 8; ++l) line[l] = in[l];
  }
}

/// The unsigned levels of a Layout's codebook.
inline Levels levels_of(const Layout& layout) {
  std::uint8_t level[16];
  for (int code = 0; code < 16; ++code) {
    level[code] = static_cast<std::uint8_t>(layout.codebook[code] + layout.code_offset);
  }
  return load_levels(level);
}

}  // namespace headrace::kernels::HEADRACE_ISA
