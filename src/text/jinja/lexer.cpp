// The lexer: one pass over the source, a state machine of text, comment, raw text and tag.
#include "text/jinja/lexer.hpp"

#include <array>
#include <charconv>
#include <cstdlib>

#include "text/jinja/string_literal.hpp"
#include "text/jinja/unicode.hpp"

namespace headrace::text::jinja {
namespace {

using Type = Token::Type;

constexpr std::array<std::string_view, 26> symbols{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                   "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                   ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// One newline at the end goes; every kind of line end becomes \n.
std::string normalize(std::string_view source) {
  std::string result;
  result.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
      result += '\n';
    } else {
      result += source[i];
    }
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name) : source_(normalize(source)), name_(name) {}

  std::vector<Token> run() {
    while (position_ < source_.size()) root();
    push(Type::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& message) const { raise_at(name_, line_, message); }

  [[nodiscard]] bool at(std::string_view text, std::size_t position) const {
    return source_.compare(position, text.size(), text) == 0;
  }
  [[nodiscard]] char peek(std::size_t ahead = 0) const {
    return position_ + ahead < source_.size() ? source_[position_ + ahead] : '\0';
  }
  void push(Type type, std::string text) {
    Token token;
    token.type = type;
    token.text = std::move(text);
    token.line = line_;
    tokens_.push_back(std::move(token));
  }
  /// Moves to `end`, counting lines.
  void advance(std::size_t end) {
    for (; position_ < end; ++position_) line_ += source_[position_] == '\n';
  }
  [[nodiscard]] std::size_t skip_space(std::size_t position) const {
    while (position < source_.size()) {
      std::size_t after = position;
      if (!unicode::is_space(unicode::next(source_, after))) break;
      position = after;
    }
    return position;
  }

  /// Emits the text before a tag that starts with white space control `sign` ('-', '+' or 0).
  void text_before(std::size_t end, char sign, bool variable) {
    std::string_view text = std::string_view(source_).substr(position_, end - position_);
    if (sign == '-') {
      text = unicode::strip(text, false, true);
    } else if (sign != '+' && !variable) {
      const std::size_t newline = text.rfind('\n');
      const std::size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
      if ((line_start > 0 || line_starting_) && unicode::strip(text.substr(line_start)).empty()) {
        text = text.substr(0, line_start);
      }
    }
    if (!text.empty()) push(Type::data, std::string(text));
    advance(end);
  }

  /// The end of a tag's closing part at `position`, or npos: `+%}`, `-%}` with the space behind, `%}` with a newline.
  [[nodiscard]] std::size_t closing(std::size_t position, std::string_view close) const {
    if (at("+", position) && at(close, position + 1)) return position + 1 + close.size();
    if (at("-", position) && at(close, position + 1)) return skip_space(position + 1 + close.size());
    if (!at(close, position)) return std::string::npos;
    const std::size_t end = position + close.size();
    return at("\n", end) ? end + 1 : end;
  }

  void closed_at(std::size_t end) {
    line_starting_ = end > 0 && source_[end - 1] == '\n';
    advance(end);
  }

  /// After `{%`: the end of `[+-] raw %}`, or npos.
  [[nodiscard]] std::size_t raw_begin(std::size_t position) const {
    if (at("-", position) || at("+", position)) ++position;
    position = skip_space(position);
    if (!at("raw", position)) return std::string::npos;
    position = skip_space(position + 3);
    if (at("-%}", position)) return skip_space(position + 3);
    return at("%}", position) ? position + 2 : std::string::npos;
  }

  void root() {
    std::size_t open = position_;
    while (true) {
      open = source_.find('{', open);
      if (open == std::string::npos || open + 1 >= source_.size()) {
        push(Type::data, source_.substr(position_));
        advance(source_.size());
        return;
      }
      const char kind = source_[open + 1];
      if (kind == '{' || kind == '%' || kind == '#') break;
      ++open;
    }
    const char kind = source_[open + 1];
    const char next = open + 2 < source_.size() ? source_[open + 2] : '\0';
    const char sign = next == '-' || next == '+' ? next : '\0';
    const std::size_t raw = kind == '%' ? raw_begin(open + 2) : std::string::npos;
    text_before(open, sign, kind == '{');
    if (raw != std::string::npos) {
      closed_at(raw);
      raw_text();
      return;
    }
    advance(open + (sign != '\0' ? 3 : 2));
    if (kind == '#') {
      comment();
    } else {
      push(kind == '%' ? Type::block_begin : Type::variable_begin, "");
      tag(kind == '%');
    }
  }

  void comment() {
    const std::size_t body = position_;
    const std::size_t end = source_.find("#}", position_);
    if (end == std::string::npos) fail("expected '#}' to end the comment, found the end of the template");
    const bool signed_end = end > body && (source_[end - 1] == '-' || source_[end - 1] == '+');
    closed_at(closing(signed_end ? end - 1 : end, "#}"));
  }

  void raw_text() {
    for (std::size_t open = source_.find("{%", position_); open != std::string::npos;
         open = source_.find("{%", open + 1)) {
      std::size_t inside = open + 2;
      const char sign = at("-", inside) || at("+", inside) ? source_[inside] : '\0';
      inside = skip_space(inside + (sign != '\0' ? 1 : 0));
      if (!at("endraw", inside)) continue;
      const std::size_t end = closing(skip_space(inside + 6), "%}");
      if (end == std::string::npos) continue;
      text_before(open, sign, false);
      closed_at(end);
      return;
    }
    fail("expected '{% endraw %}', found the end of the template");
  }

  void tag(bool block) {
    std::string open_brackets;
    while (true) {
      if (position_ >= source_.size()) {
        fail(fmt::format("expected '{}', found the end of the template", block ? "%}" : "}}"));
      }
      if (open_brackets.empty()) {
        std::size_t end = std::string::npos;
        if (block) {
          end = closing(position_, "%}");
        } else if (at("-}}", position_)) {
          end = skip_space(position_ + 3);
        } else if (at("}}", position_)) {
          end = position_ + 2;
        }
        if (end != std::string::npos) {
          push(block ? Type::block_end : Type::variable_end, "");
          closed_at(end);
          return;
        }
      }
      const std::size_t space = skip_space(position_);
      if (space != position_) {
        advance(space);
      } else if (is_digit(peek())) {
        number();
      } else if (peek() == '\'' || peek() == '"') {
        string();
      } else if (!name()) {
        symbol(open_brackets);
      }
    }
  }

  /// The end of a run of digits with single underscores between them.
  [[nodiscard]] std::size_t digits(std::size_t position) const {
    while (position < source_.size() &&
           (is_digit(source_[position]) || (source_[position] == '_' && position + 1 < source_.size() &&
                                            is_digit(source_[position + 1]) && is_digit(source_[position - 1])))) {
      ++position;
    }
    return position;
  }

  void number() {
    const std::size_t start = position_;
    const bool after_dot = start > 0 && source_[start - 1] == '.';
    std::size_t end = digits(start);
    bool real = false;
    if (!after_dot) {
      std::size_t point = end;
      if (at(".", end) && end + 1 < source_.size() && is_digit(source_[end + 1])) {
        point = digits(end + 1);
        real = true;
      }
      std::size_t exponent = point;
      if (exponent < source_.size() && (source_[exponent] == 'e' || source_[exponent] == 'E')) {
        ++exponent;
        if (at("+", exponent) || at("-", exponent)) ++exponent;
        if (exponent < source_.size() && is_digit(source_[exponent])) {
          point = digits(exponent);
          real = true;
        }
      }
      if (real) end = point;
    }
    int base = 10;
    if (!real) end = integer_end(start, end, base);
    std::string text;
    for (std::size_t i = start + (base == 10 ? 0 : 2); i < end; ++i) {
      if (source_[i] != '_') text += source_[i];
    }
    push(real ? Type::real : Type::integer, "");
    if (real) {
      tokens_.back().real = std::strtod(text.c_str(), nullptr);
    } else {
      const auto result = std::from_chars(text.data(), text.data() + text.size(), tokens_.back().integer, base);
      if (result.ec != std::errc()) fail("expected an integer of at most 64 bits, found " + text);
    }
    advance(end);
  }

  /// Handles 0b, 0o, 0x, and that a decimal number starting with 0 is only zeros.
  [[nodiscard]] std::size_t integer_end(std::size_t start, std::size_t decimal_end, int& base) const {
    if (source_[start] != '0') return decimal_end;
    const char mark = start + 1 < source_.size() ? static_cast<char>(source_[start + 1] | 0x20) : '\0';
    const int wanted = mark == 'b' ? 2 : (mark == 'o' ? 8 : (mark == 'x' ? 16 : 0));
    const auto fits = [&](std::size_t i) {
      if (i >= source_.size()) return false;
      const char c = static_cast<char>(source_[i] | 0x20);
      const int digit = is_digit(source_[i]) ? source_[i] - '0' : (c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99);
      return digit < wanted;
    };
    std::size_t end = start + 2;
    while (wanted != 0 && (fits(end) || (at("_", end) && fits(end + 1)))) ++end;
    if (wanted != 0 && end > start + 2) {
      base = wanted;
      return end;
    }
    end = start + 1;
    while (end < decimal_end && (source_[end] == '0' || (source_[end] == '_' && at("0", end + 1)))) ++end;
    return end;
  }

  void string() {
    const char quote = source_[position_];
    std::size_t end = position_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail(fmt::format("expected a closing {}, found the end of the template", quote));
    std::string problem;
    auto text = unescape(std::string_view(source_).substr(position_ + 1, end - position_ - 1), problem);
    if (!problem.empty()) fail("string: " + problem);
    push(Type::string, std::move(text));
    advance(end + 1);
  }

  bool name() {
    std::size_t end = position_;
    while (end < source_.size()) {
      std::size_t after = end;
      if (!unicode::is_word(unicode::next(source_, after))) break;
      end = after;
    }
    if (end == position_) return false;
    push(Type::name, source_.substr(position_, end - position_));
    advance(end);
    return true;
  }

  void symbol(std::string& open_brackets) {
    for (const auto each : symbols) {
      if (!at(each, position_)) continue;
      if (each == "(" || each == "[" || each == "{") {
        open_brackets += each == "(" ? ')' : (each == "[" ? ']' : '}');
      } else if (each == ")" || each == "]" || each == "}") {
        if (open_brackets.empty()) fail(fmt::format("found an unexpected '{}'", each));
        if (open_brackets.back() != each[0]) {
          fail(fmt::format("expected '{}', found '{}'", open_brackets.back(), each));
        }
        open_brackets.pop_back();
      }
      push(Type::symbol, std::string(each));
      advance(position_ + each.size());
      return;
    }
    std::size_t after = position_;
    static_cast<void>(unicode::next(source_, after));
    fail(fmt::format("found an unexpected character '{}'", source_.substr(position_, after - position_)));
  }

  std::string source_;
  const std::string& name_;
  std::size_t position_ = 0;
  std::size_t line_ = 1;
  bool line_starting_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::string describe(const Token& token) {
  switch (token.type) {
    case Type::data:
      return "text";
    case Type::block_begin:
      return "'{%'";
    case Type::block_end:
      return "'%}'";
    case Type::variable_begin:
      return "'{{'";
    case Type::variable_end:
      return "'}}'";
    case Type::string:
      return "a string";
    case Type::integer:
    case Type::real:
      return "a number";
    case Type::name:
    case Type::symbol:
      return "'" + token.text + "'";
    case Type::end:
      return "the end of the template";
  }
  return "?";
}

std::vector<Token> tokenize(std::string_view source, const std::string& name, const Limits& limits) {
  if (source.size() > limits.source_bytes) {
    raise_at(name, 1,
             fmt::format("expected at most {} bytes of template, found {}", limits.source_bytes, source.size()));
  }
  if (!unicode::is_valid(source)) raise_at(name, 1, "expected UTF-8 text, found invalid bytes");
  return Lexer(source, name).run();
}

}  // namespace headrace::text::jinja
