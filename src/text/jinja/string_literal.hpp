// Escapes of string literals, as Python's unicode-escape codec reads them.
#pragma once

#include <string>
#include <string_view>

namespace headrace::text::jinja {

/// The text of a literal without its quotes. On a bad escape `problem` says what is wrong with it.
[[nodiscard]] std::string unescape(std::string_view literal, std::string& problem);

}  // namespace headrace::text::jinja
