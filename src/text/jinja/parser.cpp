// Statements: everything between {% and %}.
#include "text/jinja/parser.hpp"

#include <algorithm>

namespace headrace::text::jinja {

using Type = Token::Type;

Template parse(std::string_view source, const std::string& name, const Limits& limits) {
  return Parser(tokenize(source, name, limits), name, limits).run();
}

Parser::Level::Level(Parser& parser) : parser_(parser) {
  if (parser.level_ >= parser.limits_.syntax_depth) {
    parser.fail(
        fmt::format("expected expressions and blocks nested at most {} deep, found more", parser.limits_.syntax_depth));
  }
  ++parser.level_;
}

void Parser::fail(const std::string& message) const { raise_at(name_, current().line, message); }

void Parser::fail_expected(std::string_view what) const {
  fail(fmt::format("expected {}, found {}", what, describe(current())));
}

const Token& Parser::next() {
  const Token& token = tokens_[at_];
  if (token.type != Type::end) ++at_;
  return token;
}

bool Parser::skip_name(std::string_view name) {
  if (!current().is_name(name)) return false;
  next();
  return true;
}

bool Parser::skip_symbol(std::string_view symbol) {
  if (!current().is_symbol(symbol)) return false;
  next();
  return true;
}

void Parser::expect_symbol(std::string_view symbol) {
  if (!skip_symbol(symbol)) fail_expected(fmt::format("'{}'", symbol));
}

void Parser::expect_name(std::string_view name) {
  if (!skip_name(name)) fail_expected(fmt::format("'{}'", name));
}

std::string Parser::any_name() {
  if (current().type != Type::name) fail_expected("a name");
  return next().text;
}

void Parser::expect(Type type, std::string_view what) {
  if (current().type != type) fail_expected(what);
  next();
}

NameId Parser::intern(const std::string& name) {
  const auto [at, added] = ids_.emplace(name, static_cast<NameId>(names_.size()));
  if (added) names_.push_back(name);
  return at->second;
}

void Parser::raise_unknown(std::size_t mark) const {
  if (unknown_.size() > mark) raise_at(name_, unknown_[mark].first, unknown_[mark].second);
}

Template Parser::run() {
  Template result;
  result.body = statements({});
  raise_unknown(0);
  result.name = name_;
  result.names = std::move(names_);
  return result;
}

/// Statements until one of the tags `ends` (whose name is then current), or the end of the template if none is given.
Body Parser::statements(std::initializer_list<std::string_view> ends) {
  const Level level(*this);
  Body body;
  const auto add = [&](Statement::Node node, std::size_t line) {
    body.push_back(std::make_unique<const Statement>(Statement{std::move(node), line}));
  };
  while (true) {
    const Token& token = current();
    if (token.type == Type::data) {
      add(node::Text{next().text}, token.line);
    } else if (token.type == Type::variable_begin) {
      next();
      add(node::Print{parse_tuple(true, false)}, token.line);
      expect(Type::variable_end, "'}}'");
    } else if (token.type == Type::block_begin) {
      next();
      if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return current().is_name(end); })) return body;
      body.push_back(statement());
      expect(Type::block_end, "'%}'");
    } else {
      if (ends.size() > 0) fail_expected(fmt::format("'{{% {} %}}'", fmt::join(ends, " %}' or '{% ")));
      return body;
    }
  }
}

/// The rest of a tag, then statements until one of `ends`.
Body Parser::block(std::initializer_list<std::string_view> ends) {
  skip_symbol(":");
  expect(Type::block_end, "'%}'");
  return statements(ends);
}

std::unique_ptr<const Statement> Parser::statement() {
  const Token& token = current();
  if (token.type != Type::name) fail_expected("a tag's name");
  const std::size_t line = token.line;
  const std::string& tag = token.text;
  const auto built = [&](Statement::Node node) {
    return std::make_unique<const Statement>(Statement{std::move(node), line});
  };
  next();
  if (tag == "if") return built(parse_if());
  if (tag == "for") return built(parse_for());
  if (tag == "set") return built(parse_set());
  if (tag == "macro") return built(parse_macro());
  if (tag == "call") return built(parse_call_block());
  if (tag == "filter") return built(parse_filter_block());
  if (tag == "with") return built(parse_with());
  if (tag == "generation") return built(parse_scoped("endgeneration"));
  if (tag == "print") {
    node::Concat printed;
    while (current().type != Type::block_end) {
      if (!printed.parts.empty()) expect_symbol(",");
      printed.parts.push_back(expression());
    }
    return built(node::Print{make(std::move(printed), line, {})});
  }
  if (tag == "break" || tag == "continue") {
    if (loops_ == 0) fail(fmt::format("'{}': expected to be inside a loop, found none", tag));
    return tag == "break" ? built(node::Break{}) : built(node::Continue{});
  }
  raise_at(name_, line, fmt::format("expected a tag that is known and closed in order, found '{}'", tag));
}

Statement::Node Parser::parse_if() {
  node::If result;
  const std::size_t mark = unknown_.size();
  while (true) {
    auto test = parse_tuple(false, false);
    auto body = block({"elif", "else", "endif"});
    result.branches.emplace_back(std::move(test), std::move(body));
    if (skip_name("elif")) continue;
    if (skip_name("else")) result.otherwise = block({"endif"});
    expect_name("endif");
    unknown_.resize(mark);  // jinja2 raises for these only when they run
    return result;
  }
}

Statement::Node Parser::parse_for() {
  node::For result;
  const std::size_t mark = unknown_.size();
  result.target = target(false, "in");
  expect_name("in");
  result.iterable = parse_tuple(false, false, "recursive");
  if (skip_name("if")) result.test = expression();
  result.recursive = skip_name("recursive");
  ++loops_;
  result.body = block({"endfor", "else"});
  --loops_;
  if (skip_name("else")) result.otherwise = block({"endfor"});
  expect_name("endfor");
  raise_unknown(mark);
  return result;
}

Statement::Node Parser::parse_set() {
  auto to = target(true);
  if (skip_symbol("=")) return node::Set{std::move(to), parse_tuple(true, false)};
  ExpressionPtr with_filter;
  if (current().is_symbol("|")) {
    with_filter = filter(make(node::FilterInput{}, current().line, {}));
  }
  auto body = block({"endset"});
  expect_name("endset");
  return node::SetBlock{std::move(to), std::move(with_filter), std::move(body)};
}

void Parser::signature(node::Signature& signature) {
  expect_symbol("(");
  while (!current().is_symbol(")")) {
    if (!signature.parameters.empty()) expect_symbol(",");
    signature.parameters.push_back(intern(any_name()));
    if (skip_symbol("=")) {
      signature.defaults.push_back(expression());
    } else if (!signature.defaults.empty()) {
      fail("expected a default for an argument that follows one with a default, found none");
    }
  }
  expect_symbol(")");
}

Statement::Node Parser::parse_macro() {
  node::Macro result;
  const std::size_t mark = unknown_.size();
  const std::size_t loops = std::exchange(loops_, 0);
  result.id = intern(any_name());
  macros_.push_back(&result.signature);
  signature(result.signature);
  result.body = block({"endmacro"});
  expect_name("endmacro");
  macros_.pop_back();
  loops_ = loops;
  raise_unknown(mark);
  return result;
}

Statement::Node Parser::parse_call_block() {
  node::CallBlock result;
  const std::size_t loops = std::exchange(loops_, 0);
  macros_.push_back(&result.signature);
  if (current().is_symbol("(")) signature(result.signature);
  result.call = expression();
  if (!std::holds_alternative<node::Call>(result.call->node)) fail("'call': expected a call, found something else");
  result.body = block({"endcall"});
  expect_name("endcall");
  macros_.pop_back();
  loops_ = loops;
  return result;
}

Statement::Node Parser::parse_filter_block() {
  node::FilterBlock result;
  result.filter = filter(make(node::FilterInput{}, current().line, {}), true);
  result.body = block({"endfilter"});
  expect_name("endfilter");
  return result;
}

Statement::Node Parser::parse_with() {
  node::With result;
  while (current().type != Type::block_end) {
    if (!result.assignments.empty()) expect_symbol(",");
    auto to = target(false);
    expect_symbol("=");
    result.assignments.emplace_back(std::move(to), expression());
  }
  result.body = block({"endwith"});
  expect_name("endwith");
  return result;
}

Statement::Node Parser::parse_scoped(std::string_view end) {
  const std::size_t loops = std::exchange(loops_, 0);
  node::Scoped result{block({end})};
  expect_name(end);
  loops_ = loops;
  return result;
}

/// A name, a tuple of names, or (with_namespace) name.attribute, to assign to.
ExpressionPtr Parser::target(bool with_namespace, std::string_view end) {
  const Level level(*this);
  const std::size_t line = current().line;
  const auto check = [&](const Expression& each, const auto& self) -> void {
    if (const auto* list = std::get_if<node::List>(&each.node);
        list != nullptr && list->kind == Sequence::Kind::tuple) {
      for (const auto& item : list->items) self(*item, self);
    } else if (!std::holds_alternative<node::Name>(each.node) &&
               !std::holds_alternative<node::NamespaceTarget>(each.node)) {
      raise_at(name_, line, "expected a name to assign to, found another expression");
    }
  };
  node::List list{{}, Sequence::Kind::tuple};
  bool is_tuple = false;
  while (true) {
    if (!list.items.empty()) expect_symbol(",");
    const Type type = current().type;
    if (type == Type::variable_end || type == Type::block_end || current().is_symbol(")") ||
        (!end.empty() && current().is_name(end))) {
      break;
    }
    list.items.push_back(parse_primary(with_namespace));
    if (!current().is_symbol(",")) break;
    is_tuple = true;
  }
  if (list.items.empty()) fail_expected("a name to assign to");
  ExpressionPtr result = is_tuple ? make(std::move(list), line, {}) : std::move(list.items.front());
  check(*result, check);
  return result;
}

}  // namespace headrace::text::jinja
