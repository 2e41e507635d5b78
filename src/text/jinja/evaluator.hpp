// Renders a parsed template.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "text/jinja/ast.hpp"
#include "text/jinja/runtime.hpp"

namespace headrace::text::jinja {

/// Renders `parsed` with the members of the JSON object `variables`, as jinja2's sandbox does with transformers'
/// settings. `now` is what strftime_now prints. Raises InputError `name:line: …` for a template that goes wrong,
/// calls raise_exception, or exceeds a limit.
[[nodiscard]] std::string render(const Template& parsed, const nlohmann::ordered_json& variables, const std::tm& now,
                                 const Limits& limits = {});

/// Variables of one block; a loop's body, a macro and so on open a scope inside the one that encloses them.
struct Scope {
  std::shared_ptr<Scope> parent;
  std::vector<std::pair<NameId, Value>> variables;

  [[nodiscard]] const Value* find(NameId id) const noexcept;
  void set(NameId id, Value value);
};

class Evaluator {
 public:
  Evaluator(const Template& parsed, Runtime& runtime);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  [[nodiscard]] std::string render(const nlohmann::ordered_json& variables);

  /// Calls a macro or a call block's body: binds `arguments` to the signature and captures the output.
  [[nodiscard]] Value call_macro(const node::Signature& signature, const Body& body,
                                 const std::shared_ptr<Scope>& closure, Arguments& arguments, std::string_view name);
  /// Runs a recursive loop over `items` and captures the output.
  [[nodiscard]] Value call_loop(const node::For& loop, const std::shared_ptr<Scope>& closure, const Value& items,
                                std::size_t depth);

 private:
  enum class Flow { normal, broken, continued };

  // evaluator.cpp: statements.
  Flow run(const Body& body);
  Flow run(const node::Text& statement);
  Flow run(const node::Print& statement);
  Flow run(const node::If& statement);
  Flow run(const node::For& statement);
  Flow run(const node::Set& statement);
  Flow run(const node::SetBlock& statement);
  Flow run(const node::Macro& statement);
  Flow run(const node::CallBlock& statement);
  Flow run(const node::FilterBlock& statement);
  Flow run(const node::With& statement);
  Flow run(const node::Scoped& statement);
  Flow run(const node::Break& statement);
  Flow run(const node::Continue& statement);
  Flow run_loop(const node::For& statement, const Value& iterable, std::size_t depth);
  /// Runs `body` in a scope of its own inside `parent`, with its output going to `out`.
  Flow run_captured(const Body& body, std::string& out);
  void write(const std::string& text);
  void write_value(const Value& value);
  void assign(const Expression& target, Value value);
  Value make_macro(const node::Signature& signature, const Body& body, std::string name);

  // evaluate.cpp: expressions.
  Value evaluate(const Expression& expression);
  Value evaluate(const node::Constant& node);
  Value evaluate(const node::Name& node);
  Value evaluate(const node::NamespaceTarget& node);
  Value evaluate(const node::List& node);
  Value evaluate(const node::DictLiteral& node);
  Value evaluate(const node::Not& node);
  Value evaluate(const node::Sign& node);
  Value evaluate(const node::Binary& node);
  Value evaluate(const node::Logical& node);
  Value evaluate(const node::Compare& node);
  Value evaluate(const node::Concat& node);
  Value evaluate(const node::Conditional& node);
  Value evaluate(const node::Attribute& node);
  Value evaluate(const node::Item& node);
  Value evaluate(const node::Slice& node);
  Value evaluate(const node::Call& node);
  Value evaluate(const node::FilterInput& node);
  Value evaluate(const node::Filter& node);
  Value evaluate(const node::Test& node);
  Value call(const node::Call& node, std::shared_ptr<Object> caller);
  Arguments evaluate(const CallArguments& arguments);

  const Template& template_;
  Runtime& runtime_;
  std::shared_ptr<Scope> scope_;
  std::string* out_ = nullptr;
  Value filter_input_;
  NameId loop_id_ = 0, caller_id_ = 0, varargs_id_ = 0, kwargs_id_ = 0;  // names_.size() where unused
  std::vector<std::shared_ptr<Scope>> captured_;  // scopes that macros hold: cleared at the end to break cycles
};

}  // namespace headrace::text::jinja
