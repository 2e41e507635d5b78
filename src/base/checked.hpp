// Overflow-safe arithmetic for sizes that come from outside.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

namespace headrace {

/// a + b, or nothing if the sum does not fit T.
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) noexcept {
  T result{};
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// a * b, or nothing if the product does not fit T.
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_mul(T a, T b) noexcept {
  T result{};
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// The smallest multiple of `alignment` (> 0) that is at least `value`, or nothing on overflow.
template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_align_up(T value, T alignment) noexcept {
  const auto padded = checked_add<T>(value, alignment - 1);
  if (!padded) return std::nullopt;
  return *padded / alignment * alignment;
}

/// ceil(a / b) for a >= 0, b > 0.
template <std::integral T>
[[nodiscard]] constexpr T ceil_div(T a, T b) noexcept {
  return a / b + (a % b != 0);
}

/// `value` rounded up to a multiple of `alignment`; for sizes that are known to be small enough.
template <std::integral T>
[[nodiscard]] constexpr T align_up(T value, T alignment) noexcept {
  return ceil_div(value, alignment) * alignment;
}

}  // namespace headrace
