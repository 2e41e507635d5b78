// Python's operators on template values: truth, equality, order, arithmetic, containment, attributes, items, text.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/runtime.hpp"
#include "text/jinja/value.hpp"

namespace headrace::text::jinja {

enum class Arithmetic { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class Comparison { equal, not_equal, less, less_equal, greater, greater_equal, in, not_in };

[[nodiscard]] bool is_true(const Value& value) noexcept;

/// a == b.
[[nodiscard]] bool equal(Runtime& runtime, const Value& a, const Value& b);
/// -1, 0 or 1 of an exact comparison of two numbers; nothing if one is NaN.
[[nodiscard]] std::optional<int> compare_numbers(const Value& a, const Value& b) noexcept;
/// Any comparison; raises where Python raises TypeError.
[[nodiscard]] bool compare(Runtime& runtime, Comparison op, const Value& a, const Value& b);
/// item in container.
[[nodiscard]] bool contains(Runtime& runtime, const Value& container, const Value& item);
/// Raises for list, dict and what holds them.
void require_hashable(Runtime& runtime, const Value& value);

[[nodiscard]] Value arithmetic(Runtime& runtime, Arithmetic op, const Value& a, const Value& b);
[[nodiscard]] Value negate(Runtime& runtime, const Value& value);
[[nodiscard]] Value plus(Runtime& runtime, const Value& value);

/// value.name with jinja2's rules: an attribute or method first, then an item, else undefined.
[[nodiscard]] Value get_attribute(Runtime& runtime, const Value& value, const Value& name);
/// value[key]: an item first, then an attribute, else undefined.
[[nodiscard]] Value get_item(Runtime& runtime, const Value& value, const Value& key);
/// value[start:stop:step]; None where a bound is absent.
[[nodiscard]] Value get_slice(Runtime& runtime, const Value& value, const Value& start, const Value& stop,
                              const Value& step);

/// len(value), or nothing if it has none.
[[nodiscard]] std::optional<std::size_t> length_of(const Value& value) noexcept;
/// True if iter(value) would work.
[[nodiscard]] bool is_iterable(const Value& value) noexcept;
/// The items that iterating over `value` gives (a generator is used up); raises if it is not iterable.
[[nodiscard]] std::shared_ptr<const Sequence> iterate(Runtime& runtime, const Value& value);

/// str(value), charged.
void append_text(Runtime& runtime, std::string& out, const Value& value);
[[nodiscard]] std::string text_of(Runtime& runtime, const Value& value);
/// repr(value), charged.
void append_repr(Runtime& runtime, std::string& out, const Value& value);
[[nodiscard]] std::string repr(Runtime& runtime, const Value& value);
/// repr of a float: the shortest digits that read back as the same number.
[[nodiscard]] std::string float_repr(double value);

/// json.dumps(value, ensure_ascii=…, indent=…, separators=…, sort_keys=…).
struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};
[[nodiscard]] std::string to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

/// Text with & < > ' " replaced by entities.
[[nodiscard]] std::string escape_html(std::string_view text);

/// The method `name` of a str, list, tuple or dict bound to `self`, or nothing.
[[nodiscard]] std::optional<Value> bind_method(Runtime& runtime, const Value& self, std::string_view name);

}  // namespace headrace::text::jinja
