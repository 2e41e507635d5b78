// Splits a template into text, tags and the tokens inside tags, with jinja2's white space control.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/runtime.hpp"

namespace headrace::text::jinja {

struct Token {
  enum class Type {
    data,
    block_begin,
    block_end,
    variable_begin,
    variable_end,
    name,
    string,
    integer,
    real,
    symbol,
    end
  };
  Type type = Type::end;
  std::string text;  ///< data, name, unescaped string, or symbol
  std::int64_t integer = 0;
  double real = 0;
  std::size_t line = 1;

  [[nodiscard]] bool is_name(std::string_view name) const noexcept { return type == Type::name && text == name; }
  [[nodiscard]] bool is_symbol(std::string_view symbol) const noexcept {
    return type == Type::symbol && text == symbol;
  }
};

/// What a message calls the token.
[[nodiscard]] std::string describe(const Token& token);

/// Follows jinja2's lexer with trim_blocks and lstrip_blocks set and keep_trailing_newline not set. Raises InputError
/// `name:line: …`.
[[nodiscard]] std::vector<Token> tokenize(std::string_view source, const std::string& name, const Limits& limits);

}  // namespace headrace::text::jinja
