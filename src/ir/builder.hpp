// Builder: appends nodes to one function and refuses bad input where it is built.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/op.hpp"
#include "ir/program.hpp"

namespace headrace::ir {

/// Builds one Function of a Program. All errors are InputErrors "[op] expected …, got …".
class Builder {
 public:
  /// Builds into a function of its own; `program` (may be nullptr) is where calls find their callees.
  Builder(std::string function_name, const Program* program);

  /// Adds a parameter. All parameters come before the first node.
  ValueId parameter(std::string name, Type type);

  /// Appends an op with one result and returns it. `name` is the result's, or empty.
  ValueId op(std::string_view op_name, std::span<const ValueId> operands, Attributes attributes = {},
             std::string name = "");
  ValueId op(std::string_view op_name, std::initializer_list<ValueId> operands, Attributes attributes = {},
             std::string name = "") {
    return op(op_name, std::span(operands.begin(), operands.size()), std::move(attributes), std::move(name));
  }
  /// Appends an op with any number of results.
  std::vector<ValueId> ops(const OpDef& op, std::span<const ValueId> operands, Attributes attributes);
  /// Appends a call of a function of the Program.
  std::vector<ValueId> call(std::string_view callee, std::span<const ValueId> operands);
  /// Appends the expansion of a composite in place of the op, and returns what stands for its results.
  std::vector<ValueId> expand(const OpDef& op, std::span<const ValueId> operands, Attributes attributes);

  void name(ValueId value, std::string name);
  [[nodiscard]] bool is_unnamed(ValueId value) const {
    return function_.values.at(static_cast<std::size_t>(value)).name.empty();
  }
  [[nodiscard]] const Type& type(ValueId value) const { return function_.type(value); }
  /// Finishes: these are the results.
  Function finish(std::vector<ValueId> results);

 private:
  ValueId add_value(std::string name, Type type);
  std::vector<Type> operand_types(std::string_view what, std::span<const ValueId> operands) const;

  const Program* program_;
  Function function_;
};

/// The result types of a call of `callee` with operands of these types. Weights may have any Format where the
/// parameter's Format is "*". Throws InputError "[call @name] …".
std::vector<Type> check_call(const Function& callee, std::span<const Type> operands);

}  // namespace headrace::ir
