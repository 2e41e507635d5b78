#include "ir/attribute.hpp"

#include <array>

#include <fmt/format.h>

namespace headrace::ir {

namespace {

std::string number_text(double value) {
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";  // 'n': inf and nan
  return text;
}

std::string string_text(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text + "\"";
}

template <class T, class F>
std::string list_text(const std::vector<T>& values, F&& item) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i > 0 ? ", " : "") + item(values[i]);
  return text + "]";
}

}  // namespace

std::string_view attribute_kind(std::size_t index) {
  static constexpr std::array<std::string_view, 6> names = {"integer", "number",   "bool",
                                                            "string",  "integers", "numbers"};
  return names.at(index);
}

std::string attribute_text(const Attribute& attribute) {
  struct Visitor {
    std::string operator()(std::int64_t value) const { return std::to_string(value); }
    std::string operator()(double value) const { return number_text(value); }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(const std::string& value) const { return string_text(value); }
    std::string operator()(const std::vector<std::int64_t>& values) const {
      return list_text(values, [](std::int64_t v) { return std::to_string(v); });
    }
    std::string operator()(const std::vector<double>& values) const { return list_text(values, number_text); }
  };
  return std::visit(Visitor{}, attribute);
}

}  // namespace headrace::ir
