// Unicode as Python's str sees it: strings are UTF-8 here, indexed by code point, with Python's character classes
// and case mappings (utf8proc's tables, plus the multi-character mappings that it lacks).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headrace::text::jinja::unicode {

/// True if `bytes` is well-formed UTF-8 (no surrogates, no overlong forms).
[[nodiscard]] bool is_valid(std::string_view bytes) noexcept;

/// Number of code points of well-formed UTF-8.
[[nodiscard]] std::size_t length(std::string_view bytes) noexcept;

/// Byte offset of code point `index` (0 … length) of well-formed UTF-8.
[[nodiscard]] std::size_t byte_offset(std::string_view bytes, std::size_t index) noexcept;

/// Decodes the code point at `offset` and moves `offset` behind it. `bytes` is well-formed, `offset` < size.
[[nodiscard]] char32_t next(std::string_view bytes, std::size_t& offset) noexcept;

/// Appends a scalar value (not a surrogate, at most 0x10FFFF).
void append(std::string& out, char32_t code_point);

[[nodiscard]] std::u32string decode(std::string_view bytes);
[[nodiscard]] std::string encode(std::u32string_view code_points);

/// str.isspace() of one character; also what `\s` matches.
[[nodiscard]] bool is_space(char32_t c) noexcept;
[[nodiscard]] bool is_printable(char32_t c) noexcept;
[[nodiscard]] bool is_alpha(char32_t c) noexcept;
[[nodiscard]] bool is_decimal(char32_t c) noexcept;
[[nodiscard]] bool is_alnum(char32_t c) noexcept;
[[nodiscard]] bool is_upper(char32_t c) noexcept;
[[nodiscard]] bool is_lower(char32_t c) noexcept;
[[nodiscard]] bool is_title(char32_t c) noexcept;
/// Part of an identifier: letters, digits, marks, connectors.
[[nodiscard]] bool is_word(char32_t c) noexcept;

[[nodiscard]] std::string upper(std::string_view bytes);
[[nodiscard]] std::string lower(std::string_view bytes);
/// First character in title case, the rest in lower case: str.capitalize().
[[nodiscard]] std::string capitalize(std::string_view bytes);
/// str.title(): every run of cased characters starts in title case.
[[nodiscard]] std::string title(std::string_view bytes);
[[nodiscard]] std::string swap_case(std::string_view bytes);

/// Without leading and trailing white space.
[[nodiscard]] std::string_view strip(std::string_view bytes, bool left = true, bool right = true) noexcept;

/// Offset of the first / last occurrence of `needle`, or npos; linear time in both sizes.
[[nodiscard]] std::size_t find(std::string_view bytes, std::string_view needle, std::size_t from = 0) noexcept;
[[nodiscard]] std::size_t rfind(std::string_view bytes, std::string_view needle);

}  // namespace headrace::text::jinja::unicode
