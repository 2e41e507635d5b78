// Primitives that compare and choose.
#include "ir/interpreter.hpp"
#include "ir/op.hpp"
#include "ir/reference.hpp"

namespace headrace::ir {

namespace {

std::vector<Type> infer_compare(const InferContext& context) {
  return {Type::tensor(ElementType::boolean, broadcast_numbers(context))};
}

template <bool (*compare)(double, double)>
void evaluate_compare(EvaluateContext& context) {
  map_broadcast(context.tensor(0), context.tensor(1), context.result(), compare);
}

template <bool (*compare)(double, double)>
OpDef comparison(const char* name, const char* doc) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.minimum_operands = op.maximum_operands = 2;
  op.infer = infer_compare;
  op.evaluate = evaluate_compare<compare>;
  return op;
}

bool less(double a, double b) { return a < b; }
bool less_equal(double a, double b) { return a <= b; }
bool equal(double a, double b) { return a == b; }

std::vector<Type> infer_select(const InferContext& context) {
  const Type& condition = context.numeric(0, ElementType::boolean, -1);
  const Type& a = context.numeric(1);
  const Type& b = context.numeric(2);
  context.expect(a.element == b.element, "two tensors of one element type", a.str() + " and " + b.str());
  const Shape both = broadcast_shapes(context, a.shape, b.shape);
  return {Type::tensor(a.element, broadcast_shapes(context, condition.shape, both))};
}

void evaluate_select(EvaluateContext& context) {
  const Tensor& condition = context.tensor(0);
  const Tensor& a = context.tensor(1);
  const Tensor& b = context.tensor(2);
  Tensor& y = context.result();
  const auto condition_strides = broadcast_strides(condition.shape, y.shape);
  const auto a_strides = broadcast_strides(a.shape, y.shape);
  const auto b_strides = broadcast_strides(b.shape, y.shape);
  for_each_index(y.shape, [&](std::int64_t flat, std::span<const std::int64_t> index) {
    const bool first = condition.values.at(static_cast<std::size_t>(dot(index, condition_strides))) != 0;
    y.values[static_cast<std::size_t>(flat)] = first ? a.values.at(static_cast<std::size_t>(dot(index, a_strides)))
                                                     : b.values.at(static_cast<std::size_t>(dot(index, b_strides)));
  });
}

}  // namespace

OpFamily ops_compare() {
  OpDef select;
  select.name = "select";
  select.doc = "condition ? a : b: bool[...] x [...] x [...] -> [...]";
  select.minimum_operands = select.maximum_operands = 3;
  select.infer = infer_select;
  select.evaluate = evaluate_select;
  return {comparison<less>("less", "a < b: [...] x [...] -> bool[...]"),
          comparison<less_equal>("less_equal", "a <= b: [...] x [...] -> bool[...]"),
          comparison<equal>("equal", "a == b: [...] x [...] -> bool[...]"), std::move(select)};
}

}  // namespace headrace::ir
