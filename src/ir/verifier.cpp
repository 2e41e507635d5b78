#include "ir/verifier.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "ir/builder.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

namespace {

class FunctionVerifier {
 public:
  FunctionVerifier(const Program& program, const Function& function, std::size_t index)
      : program_(program), function_(function), index_(index) {}

  void run() {
    consumed_.assign(function_.values.size(), false);
    root_.assign(function_.values.size(), -1);
    check_names();
    for (const ValueId id : function_.parameters) {
      define(id, "a parameter");
      if (type(id).is_state()) root_[static_cast<std::size_t>(id)] = id;
    }
    for (std::size_t i = 0; i < function_.body.size(); ++i) check_node(function_.body[i], i);
    check_results();
    if (static_cast<std::size_t>(defined_) != function_.values.size()) {
      refuse("values", "each value defined once", fmt::format("{} of {} defined", defined_, function_.values.size()));
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& where, const std::string& expected, const std::string& got) const {
    fail<InputError>("function @{}, {}: expected {}, got {}", function_.name, where, expected, got);
  }

  const Type& type(ValueId id) const { return function_.type(id); }

  void check_names() const {
    std::set<std::string> names;
    for (const Value& value : function_.values) {
      if (!value.name.empty() && !names.insert(value.name).second) {
        refuse("values", "distinct names", "%" + value.name + " twice");
      }
      for (const Dim& dim : value.type.shape) {
        for (const std::string& symbol : dim.symbols()) {
          const bool declared = std::any_of(program_.symbols.begin(), program_.symbols.end(),
                                            [&](const Symbol& s) { return s.name == symbol; });
          if (!declared) refuse("type " + value.type.str(), "declared symbols", symbol);
        }
      }
    }
  }

  void define(ValueId id, const std::string& where) {
    if (id != defined_) refuse(where, fmt::format("value number {}", defined_), std::to_string(id));
    if (static_cast<std::size_t>(id) >= function_.values.size())
      refuse(where, "a value", "number " + std::to_string(id));
    ++defined_;
  }

  void use(ValueId id, const std::string& where) const {
    if (id < 0 || id >= defined_) refuse(where, "a value that is defined before", "number " + std::to_string(id));
    if (consumed_[static_cast<std::size_t>(id)]) {
      refuse(where, "the newest value of a State", "one that was consumed before");
    }
  }

  void consume(ValueId from, ValueId to) {
    consumed_[static_cast<std::size_t>(from)] = true;
    root_[static_cast<std::size_t>(to)] = root_[static_cast<std::size_t>(from)];
  }

  void check_node(const Node& node, std::size_t number) {
    const std::string where =
        fmt::format("node {} ({})", number, node.is_call() ? "call @" + node.callee : node.op->name);
    std::vector<Type> operands;
    for (const ValueId id : node.operands) {
      use(id, where);
      operands.push_back(type(id));
    }
    std::vector<Type> expected;
    const Function* callee = nullptr;
    if (node.is_call()) {
      for (std::size_t i = 0; i < index_; ++i) {
        if (program_.functions[i].name == node.callee) callee = &program_.functions[i];
      }
      if (callee == nullptr) refuse(where, "a function that stands before", "none such");
      expected = check_call(*callee, operands);
    } else {
      Attributes attributes = node.attributes;
      expected = check_op(*node.op, operands, attributes);
      if (attributes != node.attributes) refuse(where, "every attribute present", "defaults left out");
    }
    if (expected.size() != node.results.size()) {
      refuse(where, fmt::format("{} results", expected.size()), std::to_string(node.results.size()));
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      define(node.results[i], where);
      if (type(node.results[i]) != expected[i]) refuse(where, expected[i].str(), type(node.results[i]).str());
    }
    follow_states(node, callee);
  }

  void follow_states(const Node& node, const Function* callee) {
    if (callee == nullptr) {
      if (node.op->consumes_state) consume(node.operands[0], node.results[0]);
      return;
    }
    // The callee was verified: its last results are its State parameters, in order.
    std::vector<ValueId> states;
    std::set<ValueId> distinct;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      if (!callee->type(callee->parameters[i]).is_state()) continue;
      states.push_back(node.operands[i]);
      if (!distinct.insert(node.operands[i]).second) refuse("call @" + callee->name, "distinct States", "one twice");
    }
    for (std::size_t i = 0; i < states.size(); ++i) {
      consume(states[i], node.results[node.results.size() - states.size() + i]);
    }
  }

  void check_results() const {
    std::vector<ValueId> states;
    for (const ValueId id : function_.parameters) {
      if (type(id).is_state()) states.push_back(id);
    }
    if (function_.results.size() < states.size()) refuse("return", "each State as a result", "too few results");
    const std::size_t tensors = function_.results.size() - states.size();
    for (std::size_t i = 0; i < function_.results.size(); ++i) {
      const ValueId id = function_.results[i];
      use(id, "return");
      if (i < tensors) {
        if (type(id).kind != Type::Kind::tensor) refuse("return", "tensors before State", type(id).str());
      } else if (!type(id).is_state() || root_[static_cast<std::size_t>(id)] != states[i - tensors]) {
        refuse("return", "the State parameters in their order", type(id).str());
      }
    }
  }

  const Program& program_;
  const Function& function_;
  std::size_t index_;
  ValueId defined_ = 0;
  std::vector<bool> consumed_;
  std::vector<ValueId> root_;  // of a state: the parameter that it grew from
};

}  // namespace

void verify(const Program& program) {
  if (program.functions.empty()) fail<InputError>("program {}: expected an entry function, got none", program.name);
  std::set<std::string> names;
  for (const Symbol& symbol : program.symbols) {
    if (!names.insert(symbol.name).second) {
      fail<InputError>("program {}: expected distinct symbols, got {} twice", program.name, symbol.name);
    }
    if (symbol.minimum < 0 || symbol.minimum > symbol.maximum) {
      fail<InputError>("symbol {}: expected a range of sizes, got [{}, {}]", symbol.name, symbol.minimum,
                       symbol.maximum);
    }
  }
  names.clear();
  for (std::size_t i = 0; i < program.functions.size(); ++i) {
    const Function& function = program.functions[i];
    if (!names.insert(function.name).second) {
      fail<InputError>("program {}: expected distinct functions, got @{} twice", program.name, function.name);
    }
    FunctionVerifier(program, function, i).run();
  }
}

}  // namespace headrace::ir
