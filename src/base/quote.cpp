#include "base/quote.hpp"

#include <cstdint>

#include <fmt/format.h>

namespace headrace {

namespace {

/// Length of the well-formed UTF-8 sequence of two to four bytes at the start of `text`, or 0 (RFC 3629: no overlong
/// forms, no surrogates, nothing beyond U+10FFFF), or 0 for the C1 control characters and the line separators.
std::size_t printable_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (byte(0) == 0xe0 && byte(1) < 0xa0) return 0;
  if (byte(0) == 0xed && byte(1) >= 0xa0) return 0;
  if (byte(0) == 0xf0 && byte(1) < 0x90) return 0;
  if (byte(0) == 0xf4 && byte(1) >= 0x90) return 0;
  if (byte(0) == 0xc2 && byte(1) < 0xa0) return 0;                                     // C1
  if (text.starts_with("\xe2\x80") && (byte(2) == 0xa8 || byte(2) == 0xa9)) return 0;  // U+2028, U+2029
  if (text.starts_with("\xe2\x80") && byte(2) >= 0xaa && byte(2) <= 0xae) return 0;    // writing direction
  return length;
}

}  // namespace

std::string quoted(std::string_view text, std::size_t limit) {
  std::string result = "'";
  for (std::size_t i = 0; i < text.size();) {
    if (result.size() > limit) {
      result += fmt::format("...' ({} bytes)", text.size());
      return result;
    }
    const auto byte = static_cast<std::uint8_t>(text[i]);
    std::size_t length = 1;
    if (byte == '\n') {
      result += "\\n";
    } else if (byte == '\'' || byte == '\\') {
      result += '\\';
      result += text[i];
    } else if (byte >= 0x20 && byte < 0x7f) {
      result += text[i];
    } else if (const auto sequence = byte < 0x80 ? 0 : printable_sequence(text.substr(i)); sequence != 0) {
      result += text.substr(i, sequence);
      length = sequence;
    } else {
      result += fmt::format("\\x{:02x}", byte);
    }
    i += length;
  }
  result += '\'';
  return result;
}

}  // namespace headrace
