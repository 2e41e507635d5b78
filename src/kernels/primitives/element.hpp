// Element types as C++ types: how each is stored, and in which type it is computed.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/half.hpp"
#include "ir/type.hpp"

namespace headrace::kernels {

using ir::ElementType;

/// Storage is what lies in memory; Compute is what arithmetic is done in. Sums, products and quotients of f16 and bf16
/// are taken in f32 and rounded, those of integers in 64 bits and cut to their width.
template <ElementType element>
struct Element;

template <class T, class C>
struct DirectElement {
  using Storage = T;
  using Compute = C;
  static Compute load(Storage value) noexcept { return static_cast<Compute>(value); }
  static Storage store(Compute value) noexcept { return static_cast<Storage>(value); }
};

template <>
struct Element<ElementType::f32> : DirectElement<float, float> {};
template <>
struct Element<ElementType::f64> : DirectElement<double, double> {};
template <>
struct Element<ElementType::i8> : DirectElement<std::int8_t, std::int64_t> {};
template <>
struct Element<ElementType::u8> : DirectElement<std::uint8_t, std::int64_t> {};
template <>
struct Element<ElementType::i32> : DirectElement<std::int32_t, std::int64_t> {};
template <>
struct Element<ElementType::i64> : DirectElement<std::int64_t, std::int64_t> {};
template <>
struct Element<ElementType::boolean> {
  using Storage = std::uint8_t;
  using Compute = std::int64_t;
  static Compute load(Storage value) noexcept { return value; }
  static Storage store(Compute value) noexcept { return value != 0 ? 1 : 0; }
};
template <>
struct Element<ElementType::f16> {
  using Storage = std::uint16_t;
  using Compute = float;
  static Compute load(Storage value) noexcept { return f16_to_f32(value); }
  static Storage store(Compute value) noexcept { return f32_to_f16(value); }
};
template <>
struct Element<ElementType::bf16> {
  using Storage = std::uint16_t;
  using Compute = float;
  static Compute load(Storage value) noexcept { return bf16_to_f32(value); }
  static Storage store(Compute value) noexcept { return f32_to_bf16(value); }
};

template <ElementType element>
using ElementTag = std::integral_constant<ElementType, element>;

/// Calls `function` with the ElementTag of a float type. `element` is one.
template <class F>
auto with_float(ElementType element, F&& function) {
  switch (element) {
    case ElementType::f16:
      return function(ElementTag<ElementType::f16>{});
    case ElementType::bf16:
      return function(ElementTag<ElementType::bf16>{});
    case ElementType::f64:
      return function(ElementTag<ElementType::f64>{});
    default:
      return function(ElementTag<ElementType::f32>{});
  }
}

/// Calls `function` with the ElementTag of any type.
template <class F>
auto with_element(ElementType element, F&& function) {
  switch (element) {
    case ElementType::i8:
      return function(ElementTag<ElementType::i8>{});
    case ElementType::u8:
      return function(ElementTag<ElementType::u8>{});
    case ElementType::i32:
      return function(ElementTag<ElementType::i32>{});
    case ElementType::i64:
      return function(ElementTag<ElementType::i64>{});
    case ElementType::boolean:
      return function(ElementTag<ElementType::boolean>{});
    default:
      return with_float(element, function);
  }
}

}  // namespace headrace::kernels
