// The alphabet as a table from code point to byte.
#include "text/byte_alphabet.hpp"

#include <array>

#include "text/utf8.hpp"

namespace headrace::text {

namespace {

/// Bytes that are printable in Latin-1 stand for themselves; the others follow in order from U+0100.
constexpr bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// By code point: the byte, or -1.
constexpr auto kBytes = [] {
  std::array<std::int16_t, 0x144> bytes{};
  bytes.fill(-1);
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    bytes[is_printable(byte) ? byte : next++] = static_cast<std::int16_t>(byte);
  }
  return bytes;
}();

}  // namespace

std::optional<std::uint8_t> byte_of_printable(char32_t code_point) noexcept {
  if (code_point >= kBytes.size() || kBytes[code_point] < 0) return std::nullopt;
  return static_cast<std::uint8_t>(kBytes[code_point]);
}

bool append_bytes_of_printable(std::string& out, std::string_view token) {
  const std::size_t size_before = out.size();
  while (!token.empty()) {
    std::optional<std::uint8_t> byte;
    std::size_t size = 0;
    if (next_utf8_unit(token).kind == Utf8Unit::Kind::character) byte = byte_of_printable(read_code_point(token, size));
    if (!byte) {
      out.resize(size_before);
      return false;
    }
    out.push_back(static_cast<char>(*byte));
    token.remove_prefix(size);
  }
  return true;
}

}  // namespace headrace::text
