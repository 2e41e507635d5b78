// Program: typed SSA functions over named Weights and State. What to compute, and nothing about where.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/attribute.hpp"
#include "ir/type.hpp"

namespace headrace::ir {

struct OpDef;

/// Index into Function::values.
using ValueId = std::int32_t;

struct Value {
  std::string name;  ///< unique in its function, or empty; parameters have one
  Type type;
  friend bool operator==(const Value&, const Value&) = default;
};

/// One op, or a call of a function that stands earlier in the Program.
struct Node {
  const OpDef* op = nullptr;  ///< nullptr for a call
  std::string callee;         ///< name of the function of a call
  Attributes attributes;      ///< every attribute of the op, defaults filled in
  std::vector<ValueId> operands;
  std::vector<ValueId> results;

  [[nodiscard]] bool is_call() const noexcept { return op == nullptr; }
  friend bool operator==(const Node&, const Node&) = default;
};

/// Parameters are tensors, Weights and State. In the entry function a Weight's name is its name in the store.
struct Function {
  std::string name;
  std::vector<Value> values;
  std::vector<ValueId> parameters;
  std::vector<Node> body;
  std::vector<ValueId> results;

  [[nodiscard]] const Type& type(ValueId id) const { return values.at(static_cast<std::size_t>(id)).type; }
  friend bool operator==(const Function&, const Function&) = default;
};

/// A symbol of dimension expressions, with its inclusive range.
struct Symbol {
  std::string name;
  std::int64_t minimum = 1;
  std::int64_t maximum = 1;
  friend bool operator==(const Symbol&, const Symbol&) = default;
};

struct Program {
  std::string name;
  std::vector<Symbol> symbols;
  std::vector<Function> functions;  ///< callees before callers; the last one is the entry

  [[nodiscard]] const Function* find(std::string_view function_name) const noexcept;
  /// The entry. Throws InternalError if there is no function.
  [[nodiscard]] const Function& entry() const;
  friend bool operator==(const Program&, const Program&) = default;
};

}  // namespace headrace::ir
