// The methods of str, and the string operations that filters share with them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/jinja/runtime.hpp"
#include "text/jinja/value.hpp"

namespace headrace::text::jinja {

struct StringMethod {
  std::string_view name;
  Value (*call)(Runtime&, const Value& self, Arguments&);
};

[[nodiscard]] std::span<const StringMethod> string_methods();

/// text.replace(from, to, count); count < 0 means all. Charged before the result is made.
[[nodiscard]] std::string replace(Runtime& runtime, std::string_view text, std::string_view from, std::string_view to,
                                  std::int64_t count);
/// Without leading / trailing characters that are in `characters`, or white space if it is null.
[[nodiscard]] std::string strip_characters(std::string_view text, const std::string* characters, bool left, bool right);
/// str.splitlines(keepends).
[[nodiscard]] std::vector<std::string> split_lines(std::string_view text, bool keep_ends);

}  // namespace headrace::text::jinja
