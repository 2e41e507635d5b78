// Sizes and loads of GGUF's metadata numbers, shared by the parser and the accessors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/error.hpp"
#include "formats/gguf.hpp"

namespace headrace::formats {

inline constexpr std::uint32_t gguf_type_count = 13;

/// Calls `visit` with a value of the C++ type of a number or boolean (u8 for a boolean), and returns what it returns.
/// Not for strings and arrays.
template <class Visitor>
auto visit_gguf_number(GgufType type, Visitor&& visit) {
  switch (type) {
    case GgufType::u8:
    case GgufType::boolean:
      return visit(std::uint8_t{});
    case GgufType::i8:
      return visit(std::int8_t{});
    case GgufType::u16:
      return visit(std::uint16_t{});
    case GgufType::i16:
      return visit(std::int16_t{});
    case GgufType::u32:
      return visit(std::uint32_t{});
    case GgufType::i32:
      return visit(std::int32_t{});
    case GgufType::u64:
      return visit(std::uint64_t{});
    case GgufType::i64:
      return visit(std::int64_t{});
    case GgufType::f32:
      return visit(float{});
    case GgufType::f64:
      return visit(double{});
    case GgufType::string:
    case GgufType::array:
      break;
  }
  throw InternalError("visit_gguf_number: the type is no number");
}

/// Bytes of a number or boolean in a file.
inline std::size_t gguf_number_bytes(GgufType type) {
  return visit_gguf_number(type, [](auto number) { return sizeof number; });
}

/// Number `i` of the raw bytes of an array.
template <class T>
T load_number(std::span<const std::byte> bytes, std::size_t i) {
  T value{};
  std::memcpy(&value, bytes.subspan(i * sizeof value, sizeof value).data(), sizeof value);
  return value;
}

}  // namespace headrace::formats
