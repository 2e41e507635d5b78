// Attributes of a node: constants that are part of what it computes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace headrace::ir {

using Attribute = std::variant<std::int64_t, double, bool, std::string, std::vector<std::int64_t>, std::vector<double>>;
using Attributes = std::map<std::string, Attribute, std::less<>>;

/// The name of an alternative of Attribute, by its index: "integer", "number", "bool", "string", "integers", "numbers".
std::string_view attribute_kind(std::size_t index);

/// As in the text form: 64, 1e-05, true, "halves", [0, 2, 1], [1.0, 0.5]. Numbers always show a point or an exponent.
std::string attribute_text(const Attribute& attribute);

}  // namespace headrace::ir
