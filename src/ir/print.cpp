#include <algorithm>
#include <string>
#include <vector>

#include "ir/op.hpp"
#include "ir/text.hpp"

namespace headrace::ir {

namespace {

bool is_plain(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  };
  // A name of digits alone would read as a number that the printer gave.
  return !name.empty() && std::all_of(name.begin(), name.end(), plain) &&
         !std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string name_text(std::string_view name) {
  return is_plain(name) ? std::string(name) : attribute_text(Attribute(std::string(name)));
}

std::string value_text(const Function& function, ValueId id) {
  const Value& value = function.values[static_cast<std::size_t>(id)];
  return "%" + (value.name.empty() ? std::to_string(id) : name_text(value.name));
}

template <class F>
std::string joined(const std::vector<ValueId>& ids, F&& item) {
  std::string text;
  for (const ValueId id : ids) text += (text.empty() ? "" : ", ") + item(id);
  return text;
}

void print_function(const Function& function, std::string& out) {
  const auto name = [&](ValueId id) { return value_text(function, id); };
  const auto type = [&](ValueId id) { return function.type(id).str(); };
  out += "  function @" + name_text(function.name) + "(" +
         joined(function.parameters, [&](ValueId id) { return name(id) + ": " + type(id); }) + ") {\n";
  for (const Node& node : function.body) {
    out += "    " + joined(node.results, name) + " = " +
           (node.is_call() ? "call @" + name_text(node.callee) : node.op->name) + "(" + joined(node.operands, name) +
           ")";
    if (!node.attributes.empty()) {
      std::string list;
      for (const auto& [key, value] : node.attributes) {
        list += (list.empty() ? "" : ", ") + key + " = " + attribute_text(value);
      }
      out += " {" + list + "}";
    }
    out += " : " + joined(node.results, type) + "\n";
  }
  out += "    return" + (function.results.empty() ? "" : " " + joined(function.results, name)) + "\n  }\n";
}

}  // namespace

std::string print(const Program& program) {
  std::string out = "program " + name_text(program.name) + " {\n";
  for (const Symbol& symbol : program.symbols) {
    out += "  symbol " + symbol.name + " in [" + std::to_string(symbol.minimum) + ", " +
           std::to_string(symbol.maximum) + "]\n";
  }
  for (const Function& function : program.functions) print_function(function, out);
  return out + "}\n";
}

}  // namespace headrace::ir
