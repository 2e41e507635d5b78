// The encoding "a16" (docs/numerics.md): numbers under one scale as codes of two int8 digits.
#pragma once

#include "kernels/isa.hpp"

namespace headrace::kernels::HEADRACE_ISA {

struct A16Scale {
  float scale = 0;    ///< NaN where the numbers have NaN or infinity
  float inverse = 0;  ///< what numbers are multiplied with before they are rounded; 0: all codes are 0
};

/// Of numbers of which the largest magnitude has these bits. As integers, magnitudes order like numbers, with infinity
/// and then NaN above all.
inline A16Scale a16_scale(std::int32_t largest) {
  constexpr float smallest = 0x1p-112f;  // below, 32512 / amax would overflow; such numbers count as zeros
  constexpr auto largest_code = static_cast<float>(a16_largest_code);
  if (largest >= 0x7f800000) return {__builtin_nanf(""), 0};
  float amax = 0;
  memcpy(&amax, &largest, 4);
  if (amax < smallest) return {};
  return {amax / largest_code, largest_code / amax};
}

/// Writes 16 numbers as digits to p and p + 32, and returns their codes.
inline Int encode_digits(Vec x, Vec inverse, std::byte* p) {
  const Int code = round_to_int(mul(x, inverse));
  store_i8(p, shift_right_8(add(code, set1_int(a16_base / 2))));
  store_i8(p + 32, code);  // code - 256 * high has the same lowest byte
  return code;
}

}  // namespace headrace::kernels::HEADRACE_ISA
