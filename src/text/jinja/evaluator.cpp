// Statements: scopes, loops, macros, output.
#include "text/jinja/evaluator.hpp"

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "text/jinja/loop.hpp"
#include "text/jinja/registry.hpp"

namespace headrace::text::jinja {
namespace {

class Macro final : public Object {
 public:
  Macro(Evaluator& evaluator, const node::Signature& signature, const Body& body, std::shared_ptr<Scope> closure,
        std::string name)
      : evaluator_(evaluator),
        signature_(signature),
        body_(body),
        closure_(std::move(closure)),
        name_(std::move(name)) {}
  [[nodiscard]] std::string describe(Runtime&) const override { return fmt::format("<Macro '{}'>", name_); }
  [[nodiscard]] std::optional<Value> attribute(Runtime& runtime, std::string_view name) override {
    if (name == "name") return runtime.string(name_);
    if (name == "catch_kwargs") return Value(signature_.uses_kwargs);
    if (name == "catch_varargs") return Value(signature_.uses_varargs);
    if (name == "caller") return Value(signature_.uses_caller);
    return std::nullopt;
  }
  [[nodiscard]] bool is_callable() const noexcept override { return true; }
  Value call(Runtime&, Arguments& arguments) override {
    return evaluator_.call_macro(signature_, body_, closure_, arguments, name_);
  }

 private:
  Evaluator& evaluator_;
  const node::Signature& signature_;
  const Body& body_;
  std::shared_ptr<Scope> closure_;
  std::string name_;
};

class Function final : public Object {
 public:
  explicit Function(const FunctionEntry& entry) : entry_(entry) {}
  [[nodiscard]] std::string describe(Runtime&) const override { return fmt::format("<function {}>", entry_.name); }
  [[nodiscard]] bool is_callable() const noexcept override { return true; }
  Value call(Runtime& runtime, Arguments& arguments) override { return entry_.call(runtime, arguments); }

 private:
  const FunctionEntry& entry_;
};

}  // namespace

const Value* Scope::find(NameId id) const noexcept {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent.get()) {
    for (const auto& [known, value] : scope->variables) {
      if (known == id) return &value;
    }
  }
  return nullptr;
}

void Scope::set(NameId id, Value value) {
  for (auto& [known, old] : variables) {
    if (known == id) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(id, std::move(value));
}

Evaluator::Evaluator(const Template& parsed, Runtime& runtime)
    : template_(parsed), runtime_(runtime), scope_(std::make_shared<Scope>()) {
  const auto id = [&](std::string_view name) {
    const auto at = std::find(parsed.names.begin(), parsed.names.end(), name);
    return static_cast<NameId>(at - parsed.names.begin());
  };
  loop_id_ = id("loop");
  caller_id_ = id("caller");
  varargs_id_ = id("varargs");
  kwargs_id_ = id("kwargs");
}

Evaluator::~Evaluator() {
  for (auto& scope : captured_) scope->variables.clear();
  runtime_.clear_namespaces();
}

std::string Evaluator::render(const nlohmann::ordered_json& variables) {
  auto globals = std::make_shared<Scope>();
  for (NameId id = 0; id < template_.names.size(); ++id) {
    const auto& name = template_.names[id];
    if (const auto given = variables.find(name); given != variables.end()) {
      globals->set(id, from_json(runtime_, *given));
      continue;
    }
    for (const auto& function : all_functions()) {
      if (function.name == name) globals->set(id, Value(std::shared_ptr<Object>(std::make_shared<Function>(function))));
    }
  }
  scope_ = std::make_shared<Scope>(Scope{std::move(globals), {}});
  std::string out;
  out_ = &out;
  run(template_.body);
  return out;
}

void Evaluator::write(const std::string& text) {
  runtime_.charge_bytes(text.size());
  *out_ += text;
  if (out_->size() > runtime_.limits().output_bytes) {
    runtime_.fail("expected at most {} bytes of output, found more", runtime_.limits().output_bytes);
  }
}

void Evaluator::write_value(const Value& value) {
  if (const auto* string = value.string()) {
    write(string->bytes);
  } else {
    write(text_of(runtime_, value));
  }
}

Evaluator::Flow Evaluator::run(const Body& body) {
  const Runtime::Level level(runtime_);
  for (const auto& statement : body) {
    runtime_.set_line(statement->line);
    runtime_.charge(1);
    const Flow flow = std::visit([this](const auto& node) { return run(node); }, statement->node);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Evaluator::Flow Evaluator::run_captured(const Body& body, std::string& out) {
  auto outer_scope = scope_;
  scope_ = std::make_shared<Scope>(Scope{outer_scope, {}});
  std::string* const outer_out = std::exchange(out_, &out);
  const Flow flow = run(body);
  out_ = outer_out;
  scope_ = std::move(outer_scope);
  return flow;
}

Evaluator::Flow Evaluator::run(const node::Text& statement) {
  write(statement.text);
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const node::Print& statement) {
  write_value(evaluate(*statement.expression));
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const node::If& statement) {
  for (const auto& [test, body] : statement.branches) {
    if (is_true(evaluate(*test))) return run(body);
  }
  return run(statement.otherwise);
}

Evaluator::Flow Evaluator::run(const node::For& statement) {
  return run_loop(statement, evaluate(*statement.iterable), 0);
}

Evaluator::Flow Evaluator::run_loop(const node::For& statement, const Value& iterable, std::size_t depth) {
  const auto outer = scope_;
  auto items = iterate(runtime_, iterable);
  if (statement.test) {
    auto kept = std::make_shared<Sequence>();
    kept->depth = items->depth;
    for (const auto& item : items->items) {
      runtime_.charge(2);
      scope_ = std::make_shared<Scope>(Scope{outer, {}});
      assign(*statement.target, item);
      if (is_true(evaluate(*statement.test))) kept->items.push_back(item);
    }
    scope_ = outer;
    items = std::move(kept);
  }
  if (items->items.empty()) return run(statement.otherwise);
  auto loop = std::make_shared<Loop>(*this, statement, items, outer, depth);
  const bool uses_loop = loop_id_ < template_.names.size();
  for (std::size_t i = 0; i < items->items.size(); ++i) {
    runtime_.charge(2);
    loop->set_index(i);
    scope_ = std::make_shared<Scope>(Scope{outer, {}});
    if (uses_loop) scope_->set(loop_id_, Value(std::shared_ptr<Object>(loop)));
    assign(*statement.target, items->items[i]);
    if (run(statement.body) == Flow::broken) break;
  }
  scope_ = outer;
  return Flow::normal;
}

Value Evaluator::call_loop(const node::For& loop, const std::shared_ptr<Scope>& closure, const Value& items,
                           std::size_t depth) {
  const Runtime::Level level(runtime_);
  std::string out;
  auto outer_scope = std::exchange(scope_, closure);
  std::string* const outer_out = std::exchange(out_, &out);
  run_loop(loop, items, depth);
  out_ = outer_out;
  scope_ = std::move(outer_scope);
  return runtime_.string(std::move(out));
}

void Evaluator::assign(const Expression& target, Value value) {
  if (const auto* name = std::get_if<node::Name>(&target.node)) {
    scope_->set(name->id, std::move(value));
    return;
  }
  if (const auto* member = std::get_if<node::NamespaceTarget>(&target.node)) {
    const Value* object = scope_->find(member->id);
    auto* to = object == nullptr ? nullptr : dynamic_cast<Namespace*>(object->object());
    if (to == nullptr) {
      runtime_.fail("set: expected '{}' to be a namespace, found {}", template_.names[member->id],
                    object == nullptr ? "nothing" : type_name(*object));
    }
    to->set(member->attribute, std::move(value));
    return;
  }
  const auto& targets = std::get<node::List>(target.node).items;
  const auto items = iterate(runtime_, value);
  if (items->items.size() != targets.size()) {
    runtime_.fail("expected {} items to unpack, found {}", targets.size(), items->items.size());
  }
  for (std::size_t i = 0; i < targets.size(); ++i) assign(*targets[i], items->items[i]);
}

Evaluator::Flow Evaluator::run(const node::Set& statement) {
  assign(*statement.target, evaluate(*statement.value));
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const node::SetBlock& statement) {
  std::string text;
  const Flow flow = run_captured(statement.body, text);
  if (flow != Flow::normal) return flow;
  Value value = runtime_.string(std::move(text));
  if (statement.filter) {
    Value outer = std::exchange(filter_input_, std::move(value));
    value = evaluate(*statement.filter);
    filter_input_ = std::move(outer);
  }
  assign(*statement.target, std::move(value));
  return Flow::normal;
}

Value Evaluator::make_macro(const node::Signature& signature, const Body& body, std::string name) {
  runtime_.charge(4);
  captured_.push_back(scope_);
  return Value(std::shared_ptr<Object>(std::make_shared<Macro>(*this, signature, body, scope_, std::move(name))));
}

Evaluator::Flow Evaluator::run(const node::Macro& statement) {
  scope_->set(statement.id, make_macro(statement.signature, statement.body, template_.names[statement.id]));
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const node::CallBlock& statement) {
  const Value caller = make_macro(statement.signature, statement.body, "caller");
  write_value(call(std::get<node::Call>(statement.call->node), caller.shared<Object>()));
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const node::FilterBlock& statement) {
  std::string text;
  const Flow flow = run_captured(statement.body, text);
  if (flow != Flow::normal) return flow;
  Value outer = std::exchange(filter_input_, runtime_.string(std::move(text)));
  write_value(evaluate(*statement.filter));
  filter_input_ = std::move(outer);
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const node::With& statement) {
  auto outer = scope_;
  auto inner = std::make_shared<Scope>(Scope{outer, {}});
  for (const auto& [target, expression] : statement.assignments) {
    Value value = evaluate(*expression);  // in the outer scope, as jinja2 does
    scope_ = inner;
    assign(*target, std::move(value));
    scope_ = outer;
  }
  scope_ = std::move(inner);
  const Flow flow = run(statement.body);
  scope_ = std::move(outer);
  return flow;
}

Evaluator::Flow Evaluator::run(const node::Scoped& statement) {
  auto outer = scope_;
  scope_ = std::make_shared<Scope>(Scope{outer, {}});
  const Flow flow = run(statement.body);
  scope_ = std::move(outer);
  return flow;
}

Evaluator::Flow Evaluator::run(const node::Break& /*statement*/) { return Flow::broken; }
Evaluator::Flow Evaluator::run(const node::Continue& /*statement*/) { return Flow::continued; }

Value Evaluator::call_macro(const node::Signature& signature, const Body& body, const std::shared_ptr<Scope>& closure,
                            Arguments& arguments, std::string_view name) {
  const Runtime::Level level(runtime_);
  const std::size_t line = runtime_.line();
  auto scope = std::make_shared<Scope>(Scope{closure, {}});
  auto outer_scope = std::exchange(scope_, scope);
  auto& named = arguments.keyword;
  const auto take = [&](std::string_view wanted) -> std::optional<Value> {
    const auto at = std::find_if(named.begin(), named.end(), [&](const auto& each) { return each.first == wanted; });
    if (at == named.end()) return std::nullopt;
    Value value = std::move(at->second);
    named.erase(at);
    return value;
  };
  const std::size_t count = signature.parameters.size();
  const std::size_t given = std::min(arguments.positional.size(), count);
  for (std::size_t i = 0; i < given; ++i) scope->set(signature.parameters[i], std::move(arguments.positional[i]));
  const std::size_t first_default = count - signature.defaults.size();
  for (std::size_t i = given; i < count; ++i) {
    const NameId id = signature.parameters[i];
    if (auto value = take(template_.names[id])) {
      scope->set(id, std::move(*value));
    } else if (i >= first_default) {
      scope->set(id, evaluate(*signature.defaults[i - first_default]));
    } else {
      scope->set(id, runtime_.undefined(fmt::format("parameter '{}' was not provided", template_.names[id])));
    }
  }
  if (signature.uses_caller) {
    auto caller = take("caller");
    scope->set(caller_id_, caller ? std::move(*caller) : runtime_.undefined("expected a caller, found none"));
  }
  if (signature.uses_kwargs) {
    DictBuilder rest(runtime_);
    for (auto& [key, value] : named) rest.set(runtime_.string(key), std::move(value));
    scope->set(kwargs_id_, rest.finish());
  } else if (!named.empty()) {
    runtime_.fail("macro '{}': found an unexpected argument '{}'", name, named.front().first);
  }
  if (signature.uses_varargs) {
    const auto from = arguments.positional.begin() + static_cast<std::ptrdiff_t>(given);
    scope->set(varargs_id_, runtime_.sequence({from, arguments.positional.end()}, Sequence::Kind::tuple));
  } else if (arguments.positional.size() > count) {
    runtime_.fail("macro '{}': expected at most {} arguments, found {}", name, count, arguments.positional.size());
  }
  std::string out;
  std::string* const outer_out = std::exchange(out_, &out);
  run(body);
  out_ = outer_out;
  scope_ = std::move(outer_scope);
  runtime_.set_line(line);
  return runtime_.string(std::move(out));
}

std::string render(const Template& parsed, const nlohmann::ordered_json& variables, const std::tm& now,
                   const Limits& limits) {
  Runtime runtime(parsed.name, limits, now);
  return Evaluator(parsed, runtime).render(variables);
}

}  // namespace headrace::text::jinja
