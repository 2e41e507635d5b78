// Types of the values of a Program: tensors, encoded tensors (lowered form), Weights and State.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/dim.hpp"

namespace headrace::ir {

enum class ElementType : std::uint8_t { f32, f16, bf16, f64, i8, u8, i32, i64, boolean };

/// "f32", "bool" …
std::string_view element_name(ElementType element);
/// Bytes of one element.
std::int64_t element_bytes(ElementType element);
bool is_float(ElementType element);
bool is_integer(ElementType element);

struct Type {
  enum class Kind : std::uint8_t { tensor, weight, state };

  Kind kind = Kind::tensor;
  ElementType element = ElementType::f32;
  /// Of a state: the shape of what one position adds.
  Shape shape;
  /// Of a tensor: the name of its encoding in the lowered form ("a16"), or empty.
  /// Of a weight: the name of its Format, or "*" for a parameter of a layer that takes any.
  /// Of a state: in the lowered form how a row is encoded, if not as elements: "q8_0", blocks of 32 of its last
  /// dimension that are f16 scales times codes in [-127, 127]; its elements read as f32.
  std::string encoding;
  /// Of a state: in the lowered form the order of its rows in a page, "" for row after row, or "columns16" for 16
  /// positions side by side, as attention reads keys.
  std::string order;

  static Type tensor(ElementType element, Shape shape);
  static Type encoded(std::string encoding, Shape shape);
  static Type weight(std::string format, Shape shape);
  /// State of kind append: each new position of a sequence adds one element of `shape`.
  static Type state(ElementType element, Shape shape);

  [[nodiscard]] bool is_tensor() const noexcept { return kind == Kind::tensor && encoding.empty(); }
  [[nodiscard]] bool is_encoded() const noexcept { return kind == Kind::tensor && !encoding.empty(); }
  [[nodiscard]] bool is_weight() const noexcept { return kind == Kind::weight; }
  [[nodiscard]] bool is_state() const noexcept { return kind == Kind::state; }
  /// As in the text form: "f32[T, 576]", "a16[T, 576]", "weight q4_1[576, 576]", "state append f16[3, 64]",
  /// "state append f16.columns16[3, 64]", "state append q8_0[3, 64]".
  [[nodiscard]] std::string str() const;

  friend bool operator==(const Type&, const Type&) = default;
};

/// Parses what Type::str() prints; throws InputError.
Type parse_type(std::string_view text);

/// Names of the encodings that a lowered Program may use. "a16": blocks of 32 codes of two int8 digits along the last
/// dimension, with an f32 scale and an i32 sum of the codes.
bool is_encoding(std::string_view name);
/// Elements of a block of the encodings "a16" and "q8_0".
inline constexpr std::int64_t encoding_block = 32;

}  // namespace headrace::ir
