#include <charconv>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "ir/builder.hpp"
#include "ir/op.hpp"
#include "ir/text.hpp"
#include "ir/verifier.hpp"

namespace headrace::ir {

namespace {

/// Characters and the words of the grammar; white space separates and is skipped.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {}

  [[noreturn]] void refuse(std::string_view expected) {
    skip_space();
    const std::string found = at_end() ? "the end" : fmt::format("'{}'", text_.substr(place_, 12));
    fail<InputError>("program text, line {}: expected {}, got {}", line_, expected, found);
  }
  [[nodiscard]] std::size_t line() const { return line_; }

  bool accept(std::string_view token) {
    skip_space();
    if (!text_.substr(place_).starts_with(token)) return false;
    place_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) refuse(fmt::format("'{}'", token));
  }
  bool accept_word(std::string_view word) {
    skip_space();
    if (!text_.substr(place_).starts_with(word)) return false;
    if (place_ + word.size() < text_.size() && is_name_char(text_[place_ + word.size()])) return false;
    place_ += word.size();
    return true;
  }

  /// A plain or a quoted name. `quoted` tells which.
  std::string name(bool* quoted = nullptr) {
    skip_space();
    if (quoted != nullptr) *quoted = !at_end() && text_[place_] == '"';
    if (!at_end() && text_[place_] == '"') return string();
    const std::size_t start = place_;
    while (!at_end() && is_name_char(text_[place_])) ++place_;
    if (place_ == start) refuse("a name");
    return std::string(text_.substr(start, place_ - start));
  }

  std::string string() {
    expect("\"");
    std::string value;
    while (true) {
      if (at_end()) refuse("the end of a string");
      char c = text_[place_++];
      if (c == '"') return value;
      if (c == '\n') ++line_;
      if (c == '\\') {
        if (at_end()) refuse("a character after the backslash");
        c = text_[place_++];
        if (c == 'n') c = '\n';
      }
      value += c;
    }
  }

  /// The text up to and with the bracket that ends a type.
  Type type() {
    skip_space();
    const auto end = text_.find(']', place_);
    if (end == std::string_view::npos) refuse("a type");
    const std::string_view text = text_.substr(place_, end + 1 - place_);
    if (text.find('\n') != std::string_view::npos) refuse("a type");
    place_ = end + 1;
    return parse_type(text);
  }

  Attribute scalar() {
    skip_space();
    if (!at_end() && text_[place_] == '"') return string();
    if (accept_word("true")) return true;
    if (accept_word("false")) return false;
    const std::size_t start = place_;
    while (!at_end() && (is_name_char(text_[place_]) || text_[place_] == '+')) ++place_;
    const std::string_view token = text_.substr(start, place_ - start);
    const char* const end = token.data() + token.size();
    if (token.find_first_of(".en") == std::string_view::npos) {
      std::int64_t value = 0;
      const auto result = std::from_chars(token.data(), end, value);
      if (result.ec == std::errc{} && result.ptr == end) return value;
    } else {
      double value = 0;
      const auto result = std::from_chars(token.data(), end, value);
      if (result.ec == std::errc{} && result.ptr == end) return value;
    }
    place_ = start;
    refuse("a value of an attribute");
  }

  std::int64_t integer() {
    const Attribute value = scalar();
    if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
    refuse("an integer");
  }

  /// `empty_kind`: the alternative that an empty list stands for.
  Attribute attribute(const Attribute* empty_kind) {
    if (!accept("[")) return scalar();
    if (accept("]")) {
      if (empty_kind != nullptr && std::holds_alternative<std::vector<double>>(*empty_kind))
        return std::vector<double>{};
      return std::vector<std::int64_t>{};
    }
    std::vector<std::int64_t> integers;
    std::vector<double> numbers;
    do {
      const Attribute item = scalar();
      if (const auto* integer = std::get_if<std::int64_t>(&item)) {
        integers.push_back(*integer);
      } else if (const auto* number = std::get_if<double>(&item)) {
        numbers.push_back(*number);
      } else {
        refuse("a list of numbers");
      }
    } while (accept(","));
    expect("]");
    if (!integers.empty() && !numbers.empty()) refuse("a list of one kind of numbers");
    if (numbers.empty()) return integers;
    return numbers;
  }

  bool finished() {
    skip_space();
    return at_end();
  }

 private:
  static bool is_name_char(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
  }
  [[nodiscard]] bool at_end() const { return place_ >= text_.size(); }
  void skip_space() {
    while (!at_end() && (text_[place_] == ' ' || text_[place_] == '\n' || text_[place_] == '\t')) {
      if (text_[place_] == '\n') ++line_;
      ++place_;
    }
  }

  std::string_view text_;
  std::size_t place_ = 0;
  std::size_t line_ = 1;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : cursor_(text) {}

  Program run() {
    cursor_.expect("program");
    program_.name = cursor_.name();
    cursor_.expect("{");
    while (cursor_.accept_word("symbol")) {
      Symbol symbol;
      symbol.name = cursor_.name();
      cursor_.expect("in");
      cursor_.expect("[");
      symbol.minimum = cursor_.integer();
      cursor_.expect(",");
      symbol.maximum = cursor_.integer();
      cursor_.expect("]");
      program_.symbols.push_back(std::move(symbol));
    }
    while (cursor_.accept_word("function")) function();
    cursor_.expect("}");
    if (!cursor_.finished()) cursor_.refuse("the end");
    verify(program_);
    return std::move(program_);
  }

 private:
  /// The text of a value: names and numbers of one function are kept apart.
  std::string key() {
    cursor_.expect("%");
    bool quoted = false;
    const std::string name = cursor_.name(&quoted);
    return (quoted || name.find_first_not_of("0123456789") != std::string::npos ? "n" : "#") + name;
  }

  ValueId use() {
    const std::string name = key();
    const auto place = values_.find(name);
    if (place == values_.end()) cursor_.refuse("a value that is defined before, not %" + name.substr(1));
    return place->second;
  }

  void define(Builder& builder, const std::string& name, ValueId id) {
    if (!values_.emplace(name, id).second) cursor_.refuse("a new name, not %" + name.substr(1) + " again");
    if (name[0] == 'n') builder.name(id, name.substr(1));
  }

  std::vector<ValueId> uses() {
    std::vector<ValueId> operands;
    cursor_.expect("(");
    if (cursor_.accept(")")) return operands;
    do {
      operands.push_back(use());
    } while (cursor_.accept(","));
    cursor_.expect(")");
    return operands;
  }

  Attributes attributes(const OpDef& op) {
    Attributes result;
    if (!cursor_.accept("{")) return result;
    do {
      const std::string name = cursor_.name();
      const Attribute* example = nullptr;
      for (const AttributeSpec& spec : op.attributes) {
        if (spec.name == name) example = &spec.example;
      }
      cursor_.expect("=");
      if (!result.emplace(name, cursor_.attribute(example)).second) cursor_.refuse("each attribute once");
    } while (cursor_.accept(","));
    cursor_.expect("}");
    return result;
  }

  void node(Builder& builder) {
    std::vector<std::string> names;
    do {
      names.push_back(key());
    } while (cursor_.accept(","));
    cursor_.expect("=");
    std::vector<ValueId> results;
    if (cursor_.accept_word("call")) {
      cursor_.expect("@");
      const std::string callee = cursor_.name();
      results = builder.call(callee, uses());
    } else {
      const std::string op_name = cursor_.name();
      const OpDef* op = find_op(op_name);
      if (op == nullptr) cursor_.refuse("the name of an op before this, not " + op_name);
      const std::vector<ValueId> operands = uses();
      results = builder.ops(*op, operands, attributes(*op));
    }
    if (results.size() != names.size()) cursor_.refuse(fmt::format("{} results before this", results.size()));
    cursor_.expect(":");
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (i > 0) cursor_.expect(",");
      const Type stated = cursor_.type();
      if (stated != builder.type(results[i])) cursor_.refuse(builder.type(results[i]).str() + " before this");
      define(builder, names[i], results[i]);
    }
  }

  void function() {
    cursor_.expect("@");
    Builder builder(cursor_.name(), &program_);
    values_.clear();
    cursor_.expect("(");
    if (!cursor_.accept(")")) {
      do {
        const std::string name = key();
        if (name[0] != 'n') cursor_.refuse("a name for each parameter before this");
        cursor_.expect(":");
        const ValueId id = builder.parameter(name.substr(1), cursor_.type());
        if (!values_.emplace(name, id).second) cursor_.refuse("distinct parameters");
      } while (cursor_.accept(","));
      cursor_.expect(")");
    }
    cursor_.expect("{");
    while (!cursor_.accept_word("return")) {
      try {
        node(builder);
      } catch (const InputError& error) {
        if (std::string_view(error.what()).starts_with("program text")) throw;
        fail<InputError>("program text, line {}: {}", cursor_.line(), error.what());
      }
    }
    std::vector<ValueId> results;
    if (!cursor_.accept("}")) {
      do {
        results.push_back(use());
      } while (cursor_.accept(","));
      cursor_.expect("}");
    }
    program_.functions.push_back(builder.finish(std::move(results)));
  }

  Cursor cursor_;
  Program program_;
  std::map<std::string, ValueId> values_;
};

}  // namespace

Program parse_program(std::string_view text) { return Parser(text).run(); }

}  // namespace headrace::ir
