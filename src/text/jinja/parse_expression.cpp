// Expressions, from the loosest operator to the tightest.
#include <algorithm>
#include <array>

#include "text/jinja/parser.hpp"
#include "text/jinja/registry.hpp"

namespace headrace::text::jinja {

using Type = Token::Type;

ExpressionPtr Parser::make(Expression::Node node, std::size_t line, std::initializer_list<const Expression*> children) {
  std::size_t depth = 1;
  for (const auto* child : children) {
    if (child != nullptr) depth = std::max(depth, child->depth + 1);
  }
  if (const auto* list = std::get_if<node::List>(&node)) {
    for (const auto& item : list->items) depth = std::max(depth, item->depth + 1);
  } else if (const auto* dict = std::get_if<node::DictLiteral>(&node)) {
    for (const auto& [key, value] : dict->entries) depth = std::max({depth, key->depth + 1, value->depth + 1});
  } else if (const auto* concat = std::get_if<node::Concat>(&node)) {
    for (const auto& part : concat->parts) depth = std::max(depth, part->depth + 1);
  } else if (const auto* compare = std::get_if<node::Compare>(&node)) {
    for (const auto& [op, operand] : compare->rest) depth = std::max(depth, operand->depth + 1);
  } else if (const auto* called = std::get_if<node::Call>(&node)) {
    depth = std::max(depth, deepest(called->arguments) + 1);
  } else if (const auto* filtered = std::get_if<node::Filter>(&node)) {
    depth = std::max(depth, deepest(filtered->arguments) + 1);
  } else if (const auto* tested = std::get_if<node::Test>(&node)) {
    depth = std::max(depth, deepest(tested->arguments) + 1);
  }
  // Chains like a + b + c grow to the left without recursion here, but are evaluated and freed with recursion.
  if (depth > limits_.syntax_depth * 2) {
    raise_at(name_, line,
             fmt::format("expected expressions of at most {} levels, found more", limits_.syntax_depth * 2));
  }
  return std::make_unique<const Expression>(Expression{std::move(node), line, depth});
}

std::size_t Parser::deepest(const CallArguments& arguments) {
  std::size_t depth = 0;
  for (const auto& each : arguments.positional) depth = std::max(depth, each->depth);
  for (const auto& [name, each] : arguments.keyword) depth = std::max(depth, each->depth);
  if (arguments.star) depth = std::max(depth, arguments.star->depth);
  if (arguments.double_star) depth = std::max(depth, arguments.double_star->depth);
  return depth;
}

ExpressionPtr Parser::expression(bool with_condition) {
  const Level level(*this);
  return with_condition ? parse_condition() : parse_or();
}

ExpressionPtr Parser::parse_condition() {
  const Level level(*this);
  const std::size_t mark = unknown_.size();
  std::size_t line = current().line;
  auto result = parse_or();
  while (skip_name("if")) {
    auto condition = parse_or();
    ExpressionPtr otherwise = skip_name("else") ? parse_condition() : nullptr;
    const auto *a = condition.get(), *b = result.get(), *c = otherwise.get();
    result = make(node::Conditional{std::move(condition), std::move(result), std::move(otherwise)}, line, {a, b, c});
    line = current().line;
    unknown_.resize(std::min(unknown_.size(), mark));
  }
  return result;
}

ExpressionPtr Parser::parse_or() {
  auto left = parse_and();
  while (current().is_name("or")) {
    const std::size_t line = next().line;
    auto right = parse_and();
    const auto *a = left.get(), *b = right.get();
    left = make(node::Logical{false, std::move(left), std::move(right)}, line, {a, b});
  }
  return left;
}

ExpressionPtr Parser::parse_and() {
  auto left = parse_not();
  while (current().is_name("and")) {
    const std::size_t line = next().line;
    auto right = parse_not();
    const auto *a = left.get(), *b = right.get();
    left = make(node::Logical{true, std::move(left), std::move(right)}, line, {a, b});
  }
  return left;
}

ExpressionPtr Parser::parse_not() {
  if (!current().is_name("not")) return parse_compare();
  const Level level(*this);
  const std::size_t line = next().line;
  auto operand = parse_not();
  const auto* a = operand.get();
  return make(node::Not{std::move(operand)}, line, {a});
}

ExpressionPtr Parser::parse_compare() {
  const std::size_t line = current().line;
  node::Compare result;
  result.first = parse_sum();
  static constexpr std::array<std::pair<std::string_view, Comparison>, 6> operators{
      {{"==", Comparison::equal},
       {"!=", Comparison::not_equal},
       {"<", Comparison::less},
       {"<=", Comparison::less_equal},
       {">", Comparison::greater},
       {">=", Comparison::greater_equal}}};
  while (true) {
    const auto found = std::find_if(operators.begin(), operators.end(),
                                    [&](const auto& each) { return current().is_symbol(each.first); });
    if (found != operators.end()) {
      next();
      result.rest.emplace_back(found->second, parse_sum());
    } else if (skip_name("in")) {
      result.rest.emplace_back(Comparison::in, parse_sum());
    } else if (current().is_name("not") && look().is_name("in")) {
      next();
      next();
      result.rest.emplace_back(Comparison::not_in, parse_sum());
    } else {
      break;
    }
  }
  if (result.rest.empty()) return std::move(result.first);
  const auto* a = result.first.get();
  return make(std::move(result), line, {a});
}

ExpressionPtr Parser::parse_sum() {
  auto left = parse_concat();
  while (current().is_symbol("+") || current().is_symbol("-")) {
    const Token& token = next();
    auto right = parse_concat();
    const auto *a = left.get(), *b = right.get();
    const auto op = token.text == "+" ? Arithmetic::add : Arithmetic::subtract;
    left = make(node::Binary{op, std::move(left), std::move(right)}, token.line, {a, b});
  }
  return left;
}

ExpressionPtr Parser::parse_concat() {
  const std::size_t line = current().line;
  node::Concat result;
  result.parts.push_back(parse_product());
  while (skip_symbol("~")) result.parts.push_back(parse_product());
  if (result.parts.size() == 1) return std::move(result.parts.front());
  return make(std::move(result), line, {});
}

ExpressionPtr Parser::parse_product() {
  auto left = parse_power();
  static constexpr std::array<std::pair<std::string_view, Arithmetic>, 4> operators{{{"*", Arithmetic::multiply},
                                                                                     {"/", Arithmetic::divide},
                                                                                     {"//", Arithmetic::floor_divide},
                                                                                     {"%", Arithmetic::modulo}}};
  while (true) {
    const auto found = std::find_if(operators.begin(), operators.end(),
                                    [&](const auto& each) { return current().is_symbol(each.first); });
    if (found == operators.end()) return left;
    const std::size_t line = next().line;
    auto right = parse_power();
    const auto *a = left.get(), *b = right.get();
    left = make(node::Binary{found->second, std::move(left), std::move(right)}, line, {a, b});
  }
}

ExpressionPtr Parser::parse_power() {
  auto left = parse_unary();
  while (current().is_symbol("**")) {
    const std::size_t line = next().line;
    auto right = parse_unary();
    const auto *a = left.get(), *b = right.get();
    left = make(node::Binary{Arithmetic::power, std::move(left), std::move(right)}, line, {a, b});
  }
  return left;
}

ExpressionPtr Parser::parse_unary(bool with_filter) {
  const Level level(*this);
  ExpressionPtr result;
  if (current().is_symbol("-") || current().is_symbol("+")) {
    const Token& token = next();
    auto operand = parse_unary(false);
    const auto* a = operand.get();
    result = make(node::Sign{token.text == "-", std::move(operand)}, token.line, {a});
  } else {
    result = parse_primary();
  }
  result = postfix(std::move(result));
  return with_filter ? filters_and_tests(std::move(result)) : std::move(result);
}

ExpressionPtr Parser::parse_primary(bool with_namespace) {
  const Level level(*this);
  const Token& token = current();
  const std::size_t line = token.line;
  if (token.type == Type::name) {
    next();
    const std::string& name = token.text;
    if (name == "true" || name == "True") return make(node::Constant{true}, line, {});
    if (name == "false" || name == "False") return make(node::Constant{false}, line, {});
    if (name == "none" || name == "None") return make(node::Constant{None{}}, line, {});
    if (with_namespace && skip_symbol(".")) {
      return make(node::NamespaceTarget{intern(name), any_name()}, line, {});
    }
    for (auto* macro : macros_) {
      macro->uses_varargs = macro->uses_varargs || name == "varargs";
      macro->uses_kwargs = macro->uses_kwargs || name == "kwargs";
      macro->uses_caller = macro->uses_caller || name == "caller";
    }
    return make(node::Name{intern(name)}, line, {});
  }
  if (token.type == Type::string) {
    std::string text;
    while (current().type == Type::string) text += next().text;
    return make(node::Constant{Value::constant(std::move(text))}, line, {});
  }
  if (token.type == Type::integer) return make(node::Constant{next().integer}, line, {});
  if (token.type == Type::real) return make(node::Constant{next().real}, line, {});
  if (skip_symbol("(")) {
    auto result = parse_tuple(true, true);
    expect_symbol(")");
    return result;
  }
  if (token.is_symbol("[")) return parse_list();
  if (token.is_symbol("{")) return parse_dict();
  fail_expected("an expression");
}

/// One expression, or a tuple if a comma follows. `end`: a name that ends it.
ExpressionPtr Parser::parse_tuple(bool with_condition, bool explicit_parentheses, std::string_view end) {
  const std::size_t line = current().line;
  node::List result{{}, Sequence::Kind::tuple};
  bool is_tuple = false;
  while (true) {
    if (!result.items.empty()) expect_symbol(",");
    const Type type = current().type;
    if (type == Type::variable_end || type == Type::block_end || current().is_symbol(")") ||
        (!end.empty() && current().is_name(end))) {
      break;
    }
    result.items.push_back(expression(with_condition));
    if (!current().is_symbol(",")) break;
    is_tuple = true;
  }
  if (!is_tuple) {
    if (!result.items.empty()) return std::move(result.items.front());
    if (!explicit_parentheses) fail_expected("an expression");
  }
  return make(std::move(result), line, {});
}

ExpressionPtr Parser::parse_list() {
  const std::size_t line = current().line;
  expect_symbol("[");
  node::List result{{}, Sequence::Kind::list};
  while (!current().is_symbol("]")) {
    if (!result.items.empty()) expect_symbol(",");
    if (current().is_symbol("]")) break;
    result.items.push_back(expression());
  }
  expect_symbol("]");
  return make(std::move(result), line, {});
}

ExpressionPtr Parser::parse_dict() {
  const std::size_t line = current().line;
  expect_symbol("{");
  node::DictLiteral result;
  while (!current().is_symbol("}")) {
    if (!result.entries.empty()) expect_symbol(",");
    if (current().is_symbol("}")) break;
    auto key = expression();
    expect_symbol(":");
    result.entries.emplace_back(std::move(key), expression());
  }
  expect_symbol("}");
  return make(std::move(result), line, {});
}

ExpressionPtr Parser::postfix(ExpressionPtr node) {
  while (true) {
    if (current().is_symbol(".") || current().is_symbol("[")) {
      node = subscript(std::move(node));
    } else if (current().is_symbol("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr Parser::filters_and_tests(ExpressionPtr node) {
  while (true) {
    if (current().is_symbol("|")) {
      node = filter(std::move(node));
    } else if (current().is_name("is")) {
      node = test(std::move(node));
    } else if (current().is_symbol("(")) {
      node = call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr Parser::subscript(ExpressionPtr object) {
  const std::size_t line = current().line;
  const auto* a = object.get();
  if (skip_symbol(".")) {
    if (current().type == Type::name) {
      return make(node::Attribute{std::move(object), Value::constant(next().text)}, line, {a});
    }
    if (current().type != Type::integer) fail_expected("a name or a number after '.'");
    auto key = make(node::Constant{next().integer}, line, {});
    return make(node::Item{std::move(object), std::move(key)}, line, {a});
  }
  expect_symbol("[");
  const auto bound = [&]() -> ExpressionPtr {
    if (current().is_symbol(":") || current().is_symbol("]") || current().is_symbol(",")) return nullptr;
    return expression();
  };
  std::vector<ExpressionPtr> keys;
  while (!current().is_symbol("]")) {
    if (!keys.empty()) expect_symbol(",");
    auto start = bound();
    if (skip_symbol(":")) {
      auto stop = bound();
      auto step = skip_symbol(":") ? bound() : nullptr;
      if (!keys.empty() || !current().is_symbol("]")) fail("expected one slice inside [], found several");
      next();
      const auto *b = start.get(), *c = stop.get(), *d = step.get();
      return make(node::Slice{std::move(object), std::move(start), std::move(stop), std::move(step)}, line,
                  {a, b, c, d});
    }
    if (start == nullptr) fail_expected("an expression");
    keys.push_back(std::move(start));
  }
  expect_symbol("]");
  auto key =
      keys.size() == 1 ? std::move(keys.front()) : make(node::List{std::move(keys), Sequence::Kind::tuple}, line, {});
  const auto* b = key.get();
  return make(node::Item{std::move(object), std::move(key)}, line, {a, b});
}

CallArguments Parser::call_arguments() {
  CallArguments result;
  expect_symbol("(");
  const auto ensure = [&](bool valid) {
    if (!valid) fail("expected positional, keyword, * and ** arguments in this order, found another");
  };
  bool first = true;
  while (!current().is_symbol(")")) {
    if (!first) {
      expect_symbol(",");
      if (current().is_symbol(")")) break;
    }
    first = false;
    if (skip_symbol("*")) {
      ensure(!result.star && !result.double_star);
      result.star = expression();
    } else if (skip_symbol("**")) {
      ensure(!result.double_star);
      result.double_star = expression();
    } else if (current().type == Type::name && look().is_symbol("=")) {
      ensure(!result.double_star);
      std::string name = next().text;
      next();
      result.keyword.emplace_back(std::move(name), expression());
    } else {
      ensure(!result.star && !result.double_star && result.keyword.empty());
      result.positional.push_back(expression());
    }
  }
  expect_symbol(")");
  return result;
}

ExpressionPtr Parser::call(ExpressionPtr callee) {
  const std::size_t line = current().line;
  const auto* a = callee.get();
  auto arguments = call_arguments();
  return make(node::Call{std::move(callee), std::move(arguments)}, line, {a});
}

void Parser::note_unknown(std::string_view kind, const std::string& name) {
  unknown_.emplace_back(current().line, fmt::format("expected a known {}, found '{}'", kind, name));
}

ExpressionPtr Parser::filter(ExpressionPtr input, bool start_inline) {
  while (start_inline || skip_symbol("|")) {
    start_inline = false;
    const std::size_t line = current().line;
    std::string name = any_name();
    while (skip_symbol(".")) name += "." + any_name();
    CallArguments arguments;
    if (current().is_symbol("(")) arguments = call_arguments();
    const auto* entry = find_filter(name);
    if (entry == nullptr) note_unknown("filter", name);
    const auto* a = input.get();
    input = make(node::Filter{std::move(input), std::move(name), entry, std::move(arguments)}, line, {a});
  }
  return input;
}

ExpressionPtr Parser::test(ExpressionPtr input) {
  const std::size_t line = next().line;
  const bool negated = skip_name("not");
  std::string name = any_name();
  while (skip_symbol(".")) name += "." + any_name();
  CallArguments arguments;
  const Token& token = current();
  const bool starts = token.type == Type::name || token.type == Type::string || token.type == Type::integer ||
                      token.type == Type::real || token.is_symbol("[") || token.is_symbol("{");
  if (token.is_symbol("(")) {
    arguments = call_arguments();
  } else if (starts && !token.is_name("else") && !token.is_name("or") && !token.is_name("and")) {
    if (token.is_name("is")) fail("expected one test after 'is', found a chain of them");
    arguments.positional.push_back(postfix(parse_primary()));
  }
  const auto* entry = find_test(name);
  if (entry == nullptr) note_unknown("test", name);
  const auto* a = input.get();
  auto result = make(node::Test{std::move(input), std::move(name), entry, std::move(arguments)}, line, {a});
  if (!negated) return result;
  const auto* b = result.get();
  return make(node::Not{std::move(result)}, line, {b});
}

}  // namespace headrace::text::jinja
