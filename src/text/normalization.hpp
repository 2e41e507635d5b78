// Unicode normalization form C (UAX #15) of whole texts, with utf8proc's data (Unicode 15.0 in utf8proc 2.8).
#pragma once

#include <string>
#include <string_view>

namespace headrace::text {

/// Whether `text` (valid UTF-8) has only characters below U+0300, which no normalization touches.
[[nodiscard]] bool is_trivially_nfc(std::string_view text) noexcept;

/// `text` (valid UTF-8) in form C. Time n log n, memory 4 bytes a code point. utf8proc_map is not used: it sorts runs
/// of combining marks in quadratic time. Throws InternalError if utf8proc fails.
[[nodiscard]] std::string to_nfc(std::string_view text);

}  // namespace headrace::text
