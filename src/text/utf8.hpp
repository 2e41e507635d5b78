// UTF-8 from outside: repair of ill-formed bytes, whole or in pieces that cut characters, and code points to and fro.
// Ill-formed means Unicode 15 section 3.9, table 3-7; each maximal subpart becomes one U+FFFD, as Python's and
// WHATWG's decoders do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::text {

/// What stands at the start of some bytes.
struct Utf8Unit {
  enum class Kind : std::uint8_t { character, invalid, incomplete };
  Kind kind;
  /// Bytes of the character, of the maximal subpart, or of the incomplete rest. At least 1.
  std::size_t size;
};

/// Looks at the first character of `bytes` (not empty). `incomplete`: all of `bytes` is a proper prefix of a character.
[[nodiscard]] Utf8Unit next_utf8_unit(std::string_view bytes) noexcept;

[[nodiscard]] bool is_valid_utf8(std::string_view bytes) noexcept;

/// `bytes` with U+FFFD for every maximal ill-formed subpart: Python's bytes.decode("utf-8", errors="replace").
[[nodiscard]] std::string repair_utf8(std::string_view bytes);

/// The code point at the start of `text`, which is valid UTF-8 and not empty; `size` becomes its length in bytes.
[[nodiscard]] char32_t read_code_point(std::string_view text, std::size_t& size) noexcept;

void append_code_point(std::string& out, char32_t code_point);

/// Decodes a stream of bytes that may be cut anywhere: what comes out is always whole characters, and all outputs
/// together equal repair_utf8 of all inputs together, wherever the cuts are.
class Utf8Stream {
 public:
  /// The characters that `bytes` completes; an incomplete rest (3 bytes at most) waits for the next call.
  [[nodiscard]] std::string push(std::string_view bytes);
  /// The end of the stream: U+FFFD if a character is incomplete. The stream can be used again.
  [[nodiscard]] std::string flush();

 private:
  std::string pending_;
};

}  // namespace headrace::text
