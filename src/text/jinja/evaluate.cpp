// Expressions.
#include "text/jinja/evaluator.hpp"
#include "text/jinja/registry.hpp"

namespace headrace::text::jinja {

Value Evaluator::evaluate(const Expression& expression) {
  const Runtime::Level level(runtime_);
  runtime_.charge(1);
  runtime_.set_line(expression.line);
  return std::visit([this](const auto& node) { return evaluate(node); }, expression.node);
}

Value Evaluator::evaluate(const node::Constant& node) { return node.value; }

Value Evaluator::evaluate(const node::Name& node) {
  if (const auto* value = scope_->find(node.id)) return *value;
  return runtime_.undefined(fmt::format("'{}' is undefined", template_.names[node.id]));
}

Value Evaluator::evaluate(const node::NamespaceTarget& /*node*/) {
  runtime_.fail("expected an expression, found a target of set");
}

Value Evaluator::evaluate(const node::List& node) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const auto& item : node.items) items.push_back(evaluate(*item));
  return runtime_.sequence(std::move(items), node.kind);
}

Value Evaluator::evaluate(const node::DictLiteral& node) {
  DictBuilder builder(runtime_);
  for (const auto& [key_node, value_node] : node.entries) {
    Value key = evaluate(*key_node);
    builder.set(std::move(key), evaluate(*value_node));
  }
  return builder.finish();
}

Value Evaluator::evaluate(const node::Not& node) { return !is_true(evaluate(*node.operand)); }

Value Evaluator::evaluate(const node::Sign& node) {
  const Value operand = evaluate(*node.operand);
  return node.negative ? negate(runtime_, operand) : plus(runtime_, operand);
}

Value Evaluator::evaluate(const node::Binary& node) {
  const Value left = evaluate(*node.left);
  const Value right = evaluate(*node.right);
  return arithmetic(runtime_, node.op, left, right);
}

Value Evaluator::evaluate(const node::Logical& node) {
  Value left = evaluate(*node.left);
  return is_true(left) == node.is_and ? evaluate(*node.right) : left;
}

Value Evaluator::evaluate(const node::Compare& node) {
  Value left = evaluate(*node.first);
  for (const auto& [op, operand] : node.rest) {
    Value right = evaluate(*operand);
    if (!compare(runtime_, op, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Evaluator::evaluate(const node::Concat& node) {
  std::string text;
  for (const auto& part : node.parts) {
    append_text(runtime_, text, evaluate(*part));
    runtime_.charge_bytes(text.size() / 8);
  }
  return runtime_.string(std::move(text));
}

Value Evaluator::evaluate(const node::Conditional& node) {
  if (is_true(evaluate(*node.test))) return evaluate(*node.yes);
  if (node.no) return evaluate(*node.no);
  return runtime_.undefined("the inline if is false and has no else");
}

Value Evaluator::evaluate(const node::Attribute& node) {
  return get_attribute(runtime_, evaluate(*node.object), node.name);
}

Value Evaluator::evaluate(const node::Item& node) {
  const Value object = evaluate(*node.object);
  const Value key = evaluate(*node.key);
  return get_item(runtime_, object, key);
}

Value Evaluator::evaluate(const node::Slice& node) {
  const Value object = evaluate(*node.object);
  const auto bound = [&](const ExpressionPtr& each) { return each ? evaluate(*each) : Value(None{}); };
  const Value start = bound(node.start);
  const Value stop = bound(node.stop);
  const Value step = bound(node.step);
  return get_slice(runtime_, object, start, stop, step);
}

Arguments Evaluator::evaluate(const CallArguments& arguments) {
  Arguments result;
  result.positional.reserve(arguments.positional.size());
  for (const auto& each : arguments.positional) result.positional.push_back(evaluate(*each));
  for (const auto& [name, each] : arguments.keyword) result.keyword.emplace_back(name, evaluate(*each));
  if (arguments.star) {
    const auto items = iterate(runtime_, evaluate(*arguments.star));
    runtime_.charge(items->items.size());
    result.positional.insert(result.positional.end(), items->items.begin(), items->items.end());
  }
  if (arguments.double_star) {
    const Value rest = evaluate(*arguments.double_star);
    const auto* dict = rest.dict();
    if (dict == nullptr) runtime_.fail("'**': expected a dict of arguments, found {}", type_name(rest));
    for (const auto& [key, value] : dict->entries) {
      if (!key.is_string()) runtime_.fail("'**': expected names that are str, found {}", type_name(key));
      runtime_.charge(1);
      result.keyword.emplace_back(key.string()->bytes, value);
    }
  }
  return result;
}

Value Evaluator::evaluate(const node::Call& node) { return call(node, nullptr); }

Value Evaluator::call(const node::Call& node, std::shared_ptr<Object> caller) {
  const Value callee = evaluate(*node.callee);
  Arguments arguments = evaluate(node.arguments);
  if (caller != nullptr) arguments.keyword.emplace_back("caller", Value(std::move(caller)));
  const auto object = callee.shared<Object>();
  if (object == nullptr) {
    const auto* undefined = std::get_if<Undefined>(&callee.data());
    if (undefined != nullptr && undefined->message) {
      runtime_.fail("expected something to call: {}", *undefined->message);
    }
    runtime_.fail("expected something to call, found {}", type_name(callee));
  }
  return object->call(runtime_, arguments);
}

Value Evaluator::evaluate(const node::FilterInput& /*node*/) { return filter_input_; }

Value Evaluator::evaluate(const node::Filter& node) {
  const Value input = evaluate(*node.input);
  Arguments arguments = evaluate(node.arguments);
  if (node.entry == nullptr) runtime_.fail("expected a known filter, found '{}'", node.name);
  return node.entry->apply(runtime_, input, arguments);
}

Value Evaluator::evaluate(const node::Test& node) {
  const Value input = evaluate(*node.input);
  Arguments arguments = evaluate(node.arguments);
  if (node.entry == nullptr) runtime_.fail("expected a known test, found '{}'", node.name);
  return node.entry->apply(runtime_, input, arguments);
}

}  // namespace headrace::text::jinja
