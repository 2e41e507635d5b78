// GPT-2's printable alphabet: byte-level vocabularies write each byte of a token as one printable character ("Ġ" is the
// space). From encoder.py of openai/gpt-2.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::text {

/// The byte that `code_point` stands for, or nothing.
[[nodiscard]] std::optional<std::uint8_t> byte_of_printable(char32_t code_point) noexcept;

/// Appends the bytes that `token` (any bytes) stands for. False, and `out` unchanged, if it is no string of the
/// alphabet.
[[nodiscard]] bool append_bytes_of_printable(std::string& out, std::string_view token);

}  // namespace headrace::text
