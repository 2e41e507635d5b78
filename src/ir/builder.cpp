#include "ir/builder.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace headrace::ir {

Builder::Builder(std::string function_name, const Program* program) : program_(program) {
  function_.name = std::move(function_name);
}

ValueId Builder::add_value(std::string name, Type type) {
  const auto id = static_cast<ValueId>(function_.values.size());
  function_.values.push_back({"", std::move(type)});
  if (!name.empty()) this->name(id, std::move(name));
  return id;
}

void Builder::name(ValueId value, std::string name) {
  for (const Value& other : function_.values) {
    if (other.name == name)
      fail<InputError>("function @{}: expected distinct names, got %{} twice", function_.name, name);
  }
  function_.values.at(static_cast<std::size_t>(value)).name = std::move(name);
}

ValueId Builder::parameter(std::string name, Type type) {
  require(function_.body.empty(), "parameters come before the first node");
  if (name.empty()) fail<InputError>("function @{}: expected a name for each parameter, got none", function_.name);
  const ValueId id = add_value(std::move(name), std::move(type));
  function_.parameters.push_back(id);
  return id;
}

std::vector<Type> Builder::operand_types(std::string_view what, std::span<const ValueId> operands) const {
  std::vector<Type> types;
  types.reserve(operands.size());
  for (const ValueId id : operands) {
    if (id < 0 || static_cast<std::size_t>(id) >= function_.values.size()) {
      fail<InputError>("[{}] expected a value of function @{}, got number {}", what, function_.name, id);
    }
    types.push_back(function_.type(id));
  }
  return types;
}

std::vector<ValueId> Builder::ops(const OpDef& op, std::span<const ValueId> operands, Attributes attributes) {
  const std::vector<Type> types = operand_types(op.name, operands);
  Node node;
  node.op = &op;
  node.operands.assign(operands.begin(), operands.end());
  for (Type& type : check_op(op, types, attributes)) node.results.push_back(add_value("", std::move(type)));
  node.attributes = std::move(attributes);
  function_.body.push_back(node);
  return function_.body.back().results;
}

ValueId Builder::op(std::string_view op_name, std::span<const ValueId> operands, Attributes attributes,
                    std::string name) {
  const OpDef* op = find_op(op_name);
  if (op == nullptr) fail<InputError>("[{}] expected the name of an op, got none such", op_name);
  const std::vector<ValueId> results = ops(*op, operands, std::move(attributes));
  require(results.size() == 1, "an op used for its one result has one");
  if (!name.empty()) this->name(results[0], std::move(name));
  return results[0];
}

std::vector<ValueId> Builder::call(std::string_view callee, std::span<const ValueId> operands) {
  const Function* function = program_ == nullptr ? nullptr : program_->find(callee);
  if (function == nullptr) fail<InputError>("[call @{}] expected a function that stands before, got none such", callee);
  const std::vector<Type> types = operand_types("call", operands);
  Node node;
  node.callee = callee;
  node.operands.assign(operands.begin(), operands.end());
  for (Type& type : check_call(*function, types)) node.results.push_back(add_value("", std::move(type)));
  function_.body.push_back(node);
  return function_.body.back().results;
}

std::vector<ValueId> Builder::expand(const OpDef& op, std::span<const ValueId> operands, Attributes attributes) {
  require(op.expand != nullptr, "only a composite is expanded");
  const std::vector<Type> types = operand_types(op.name, operands);
  const std::vector<Type> expected = check_op(op, types, attributes);
  std::vector<ValueId> results = op.expand(*this, operands, attributes);
  require(results.size() == expected.size(), "an expansion has the op's results");
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (type(results[i]) != expected[i]) {
      fail<InternalError>("[{}] expansion: expected {}, got {}", op.name, expected[i].str(), type(results[i]).str());
    }
  }
  return results;
}

Function Builder::finish(std::vector<ValueId> results) {
  operand_types("return", results);
  function_.results = std::move(results);
  return std::move(function_);
}

std::vector<Type> check_call(const Function& callee, std::span<const Type> operands) {
  if (operands.size() != callee.parameters.size()) {
    fail<InputError>("[call @{}] expected {} operands, got {}", callee.name, callee.parameters.size(), operands.size());
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Value& parameter = callee.values[static_cast<std::size_t>(callee.parameters[i])];
    Type expected = parameter.type;
    if (expected.is_weight() && expected.encoding == "*" && operands[i].is_weight()) {
      expected.encoding = operands[i].encoding;
    }
    if (operands[i] != expected) {
      fail<InputError>("[call @{}] expected {} as %{}, got {}", callee.name, parameter.type.str(), parameter.name,
                       operands[i].str());
    }
  }
  std::vector<Type> results;
  for (const ValueId id : callee.results) {
    results.push_back(callee.type(id));
    if (results.back().is_weight())
      fail<InputError>("[call @{}] expected tensors and State as results, got a Weight", callee.name);
  }
  return results;
}

}  // namespace headrace::ir
