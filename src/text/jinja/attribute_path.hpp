// The `attribute` argument of filters: "a.b.0" looks up item after item.
#pragma once

#include <vector>

#include "text/jinja/runtime.hpp"
#include "text/jinja/value.hpp"

namespace headrace::text::jinja {

/// jinja2's make_attrgetter: parts separated by dots, digits being integers.
class AttributePath {
 public:
  /// `attribute`: a str, an int, or None for the item itself.
  AttributePath(Runtime& runtime, const Value& attribute);
  /// With `fallback`, what is undefined on the way becomes it.
  [[nodiscard]] Value get(Runtime& runtime, Value item, const Value* fallback = nullptr) const;

 private:
  std::vector<Value> parts_;
};

/// Lower-cases str, unless `case_sensitive`.
[[nodiscard]] Value fold_case(Runtime& runtime, Value value, bool case_sensitive);

}  // namespace headrace::text::jinja
