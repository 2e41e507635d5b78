// OpDef: an op is written once, in one file of ir/ops/: signature, shape rule, reference, gradient or expansion.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "ir/program.hpp"

namespace headrace::ir {

class Builder;
class EvaluateContext;

/// An attribute that an op takes. Without a default it must be given.
struct AttributeSpec {
  std::string name;
  Attribute example;  ///< its alternative is the attribute's kind; its value the default unless `required`
  bool required = true;
};

/// What a shape rule sees, with the checks that all of them need.
class InferContext {
 public:
  InferContext(std::string_view op, std::span<const Type> operands, const Attributes& attributes)
      : op_(op), operands_(operands), attributes_(attributes) {}

  [[nodiscard]] std::size_t count() const noexcept { return operands_.size(); }
  [[nodiscard]] const Type& operand(std::size_t index) const { return operands_[index]; }
  [[nodiscard]] const Attributes& attributes() const noexcept { return attributes_; }
  template <class T>
  [[nodiscard]] const T& attribute(std::string_view name) const {
    return std::get<T>(attributes_.find(name)->second);
  }

  /// Throws InputError "[op] expected …, got …".
  [[noreturn]] void refuse(const std::string& expected, const std::string& got) const;
  void expect(bool condition, const std::string& expected, const std::string& got) const {
    if (!condition) refuse(expected, got);
  }
  /// The operand as a plain tensor or a Weight (a Weight reads as f32). Refuses states and encoded tensors.
  const Type& numeric(std::size_t index) const;
  /// As numeric, of this element type and rank (-1: any).
  const Type& numeric(std::size_t index, ElementType element, int rank) const;
  const Type& weight(std::size_t index, int rank) const;
  const Type& state(std::size_t index, int rank) const;
  /// The attribute `name` as an axis of a shape of `rank`, counted from the front; negative counts from the end.
  [[nodiscard]] std::size_t axis(std::string_view name, std::size_t rank) const;

 private:
  std::string_view op_;
  std::span<const Type> operands_;
  const Attributes& attributes_;
};

/// Primitive: has `evaluate`. Composite: has `expand`, its definition in other ops.
struct OpDef {
  std::string name;
  std::string doc;  ///< one line, with shapes
  int minimum_operands = 1;
  int maximum_operands = 1;
  std::vector<AttributeSpec> attributes;

  /// Types of the results. Throws InputError through InferContext::refuse.
  std::vector<Type> (*infer)(const InferContext&) = nullptr;
  /// Reference: double accumulation, results rounded to their element type by the caller.
  void (*evaluate)(EvaluateContext&) = nullptr;
  /// Definition of a composite; returns the values that stand for the results.
  std::vector<ValueId> (*expand)(Builder&, std::span<const ValueId> operands, const Attributes&) = nullptr;
  /// Gradient of a primitive, or a composite's own: gradients of the operands from those of the results. An operand
  /// that has none gets -1.
  std::vector<ValueId> (*gradient)(Builder&, std::span<const ValueId> operands, std::span<const ValueId> results,
                                   std::span<const ValueId> result_gradients, const Attributes&) = nullptr;
  /// The result's type adds rows to State that is given (append). Its operand must not be used again.
  bool consumes_state = false;

  [[nodiscard]] bool is_primitive() const noexcept { return evaluate != nullptr; }
};

/// The ops of one file of ir/ops/.
using OpFamily = std::vector<OpDef>;

/// All families, generated from the files in ir/ops/: each defines `OpFamily ops_NAME()`.
std::span<const OpFamily> op_families();

/// The op of that name, or nullptr.
const OpDef* find_op(std::string_view name);

/// All ops, sorted by name.
std::vector<const OpDef*> all_ops();

/// Checks operands and attributes and fills in defaults; returns the results' types. Throws InputError.
std::vector<Type> check_op(const OpDef& op, std::span<const Type> operands, Attributes& attributes);

/// Shapes broadcast as numpy's: aligned at the last dimension, 1 stretches. Throws through `context`.
Shape broadcast_shapes(const InferContext& context, const Shape& a, const Shape& b);

/// The shape of a binary op on two numeric operands of one element type, broadcast. Throws through `context`.
Shape broadcast_numbers(const InferContext& context);

std::string shape_str(const Shape& shape);

}  // namespace headrace::ir
