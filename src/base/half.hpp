// f16 (IEEE 754 binary16) and bf16 to and from f32, in integer arithmetic: the same bits on every machine.
#pragma once

#include <bit>
#include <cstdint>

namespace headrace {

/// Exact widening of a binary16, subnormals, infinities and NaN payloads included.
[[nodiscard]] constexpr float f16_to_f32(std::uint16_t h) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  const std::uint32_t exponent = (h >> 10) & 0x1fu;
  std::uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0x1f) {  // a signalling NaN is made quiet, as the hardware conversion does
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13) | (mantissa != 0 ? 0x00400000u : 0u));
  }
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  if (mantissa == 0) return std::bit_cast<float>(sign);
  const int shift = std::countl_zero(mantissa) - 21;
  mantissa = (mantissa << shift) & 0x3ffu;
  return std::bit_cast<float>(sign | (static_cast<std::uint32_t>(113 - shift) << 23) | (mantissa << 13));
}

/// Rounds to nearest, ties to even, as `vcvtps2ph` does.
[[nodiscard]] constexpr std::uint16_t f32_to_f16(float f) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(f);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // NaN: keep the payload's top bits, quiet
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65536, and infinity
  if (magnitude < 0x33000000u) return sign;                                         // < 2^-25
  std::uint32_t rounded = 0;
  if (magnitude < 0x38800000u) {  // subnormal result
    const std::uint32_t exponent = magnitude >> 23;
    const std::uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const std::uint32_t shift = 126 - exponent;  // 14..24
    const std::uint32_t half = 1u << (shift - 1);
    const std::uint32_t rest = mantissa & ((1u << shift) - 1);
    rounded = mantissa >> shift;
    if (rest > half || (rest == half && (rounded & 1u) != 0)) ++rounded;
  } else {
    rounded = (magnitude - 0x38000000u) >> 13;
    const std::uint32_t rest = magnitude & 0x1fffu;
    if (rest > 0x1000u || (rest == 0x1000u && (rounded & 1u) != 0)) ++rounded;
  }
  return static_cast<std::uint16_t>(sign | rounded);
}

/// Exact widening of a bfloat16.
[[nodiscard]] constexpr float bf16_to_f32(std::uint16_t b) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
}

/// Rounds to nearest, ties to even; a NaN stays one.
[[nodiscard]] constexpr std::uint16_t f32_to_bf16(float f) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace headrace
