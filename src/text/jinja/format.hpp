// Python's three ways to format: "%s" % x, "{}".format(x), and the format specification of one value.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/runtime.hpp"
#include "text/jinja/value.hpp"

namespace headrace::text::jinja {

/// `format % arguments`, where `arguments` is a tuple, a dict (for %(name)s), or one value.
[[nodiscard]] Value format_percent(Runtime& runtime, const String& format, const Value& arguments);

/// format.format(*args, **kwargs).
[[nodiscard]] Value format_braces(Runtime& runtime, const String& format, const Arguments& arguments);

/// format(value, specification).
[[nodiscard]] std::string format_value(Runtime& runtime, const Value& value, std::string_view specification);

}  // namespace headrace::text::jinja
