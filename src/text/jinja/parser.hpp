// Recursive descent over the tokens, with jinja2's precedence; depth is bounded.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/jinja/ast.hpp"
#include "text/jinja/lexer.hpp"

namespace headrace::text::jinja {

/// Parses `source`; raises InputError `name:line: expected …, found …`.
[[nodiscard]] Template parse(std::string_view source, const std::string& name, const Limits& limits);

/// The parser's state; the two halves of its grammar are in parser.cpp (statements) and parse_expression.cpp.
class Parser {
 public:
  Parser(std::vector<Token> tokens, const std::string& name, const Limits& limits)
      : tokens_(std::move(tokens)), name_(name), limits_(limits) {}
  [[nodiscard]] Template run();

 private:
  /// One level of recursion.
  class Level {
   public:
    explicit Level(Parser& parser);
    ~Level() { --parser_.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };

  // Tokens.
  [[nodiscard]] const Token& current() const { return tokens_[at_]; }
  [[nodiscard]] const Token& look() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& next();
  bool skip_name(std::string_view name);
  bool skip_symbol(std::string_view symbol);
  void expect_symbol(std::string_view symbol);
  void expect_name(std::string_view name);
  std::string any_name();
  void expect(Token::Type type, std::string_view what);
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_expected(std::string_view what) const;
  NameId intern(const std::string& name);

  // Statements.
  Body statements(std::initializer_list<std::string_view> ends);
  Body block(std::initializer_list<std::string_view> ends);
  std::unique_ptr<const Statement> statement();
  Statement::Node parse_if();
  Statement::Node parse_for();
  Statement::Node parse_set();
  Statement::Node parse_macro();
  Statement::Node parse_call_block();
  Statement::Node parse_filter_block();
  Statement::Node parse_with();
  Statement::Node parse_scoped(std::string_view end);
  void signature(node::Signature& signature);
  ExpressionPtr target(bool with_namespace, std::string_view end = {});

  // Expressions.
  ExpressionPtr make(Expression::Node node, std::size_t line, std::initializer_list<const Expression*> children);
  ExpressionPtr expression(bool with_condition = true);
  ExpressionPtr parse_condition();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concat();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_unary(bool with_filter = true);
  ExpressionPtr parse_primary(bool with_namespace = false);
  ExpressionPtr parse_tuple(bool with_condition, bool explicit_parentheses, std::string_view end = {});
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr postfix(ExpressionPtr node);
  ExpressionPtr filters_and_tests(ExpressionPtr node);
  ExpressionPtr subscript(ExpressionPtr node);
  ExpressionPtr call(ExpressionPtr node);
  ExpressionPtr filter(ExpressionPtr node, bool start_inline = false);
  ExpressionPtr test(ExpressionPtr node);
  CallArguments call_arguments();
  void note_unknown(std::string_view kind, const std::string& name);
  /// Raises the first unknown filter or test that was noted since `mark`.
  void raise_unknown(std::size_t mark) const;
  static std::size_t deepest(const CallArguments& arguments);

  std::vector<Token> tokens_;
  const std::string& name_;
  const Limits& limits_;
  std::size_t at_ = 0;
  std::size_t level_ = 0;
  std::size_t loops_ = 0;  // enclosing loops of the same function, for break and continue
  std::vector<std::string> names_;
  std::unordered_map<std::string, NameId> ids_;
  std::vector<node::Signature*> macros_;                      // enclosing macros, to note what they use
  std::vector<std::pair<std::size_t, std::string>> unknown_;  // unknown filters and tests that may never run
};

}  // namespace headrace::text::jinja
