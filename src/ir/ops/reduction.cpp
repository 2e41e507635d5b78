// Primitives that reduce one axis, which stays with size 1.
#include <cmath>
#include <limits>

#include "ir/interpreter.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

namespace {

std::vector<Type> infer_reduction(const InferContext& context) {
  const Type& x = context.numeric(0);
  context.expect(is_float(x.element), "a float tensor", x.str());
  Shape shape = x.shape;
  shape[context.axis("axis", shape.size())] = 1;
  return {Type::tensor(x.element, shape)};
}

template <class Fold>
void fold_axis(EvaluateContext& context, double start, Fold&& fold) {
  const Tensor& x = context.tensor(0);
  Tensor& y = context.result();
  auto axis = context.attribute<std::int64_t>("axis");
  if (axis < 0) axis += static_cast<std::int64_t>(x.shape.size());
  std::int64_t inner = 1;
  for (std::size_t i = static_cast<std::size_t>(axis) + 1; i < x.shape.size(); ++i) inner *= x.shape[i];
  const std::int64_t count = x.shape[static_cast<std::size_t>(axis)];
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const auto flat = static_cast<std::int64_t>(i);
    double value = start;
    for (std::int64_t k = 0; k < count; ++k) {
      value = fold(value, x.values.at(static_cast<std::size_t>((flat / inner * count + k) * inner + flat % inner)));
    }
    y.values[i] = value;
  }
}

void evaluate_sum(EvaluateContext& context) {
  fold_axis(context, 0.0, [](double a, double b) { return a + b; });
}

void evaluate_max(EvaluateContext& context) {
  fold_axis(context, -std::numeric_limits<double>::infinity(),
            [](double a, double b) { return std::isnan(a) || a > b ? a : b; });
}

OpDef reduction(const char* name, const char* doc, void (*evaluate)(EvaluateContext&)) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.attributes = {{"axis", std::int64_t{-1}, false}};
  op.infer = infer_reduction;
  op.evaluate = evaluate;
  return op;
}

}  // namespace

OpFamily ops_reduction() {
  return {reduction("reduce_sum", "sum along `axis`: f[..., N, ...] -> f[..., 1, ...]", evaluate_sum),
          reduction("reduce_max", "largest along `axis`: f[..., N, ...] -> f[..., 1, ...]", evaluate_max)};
}

}  // namespace headrace::ir
