// Primitives on elements: unary, and binary with numpy's broadcasting.
#include <cmath>
#include <functional>

#include "ir/interpreter.hpp"
#include "ir/op.hpp"
#include "ir/reference.hpp"

namespace headrace::ir {

namespace {

std::vector<Type> infer_float_unary(const InferContext& context) {
  const Type& x = context.numeric(0);
  context.expect(is_float(x.element), "a float tensor", x.str());
  return {Type::tensor(x.element, x.shape)};
}

std::vector<Type> infer_binary(const InferContext& context) {
  return {Type::tensor(context.numeric(0).element, broadcast_numbers(context))};
}

template <double (*function)(double)>
void evaluate_unary(EvaluateContext& context) {
  const Tensor& x = context.tensor(0);
  Tensor& y = context.result();
  for (std::size_t i = 0; i < x.values.size(); ++i) y.values[i] = function(x.values[i]);
}

template <double (*function)(double, double)>
void evaluate_binary(EvaluateContext& context) {
  map_broadcast(context.tensor(0), context.tensor(1), context.result(), function);
}

template <double (*function)(double)>
OpDef unary(const char* name, const char* doc) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.infer = infer_float_unary;
  op.evaluate = evaluate_unary<function>;
  return op;
}

template <double (*function)(double, double)>
OpDef binary(const char* name, const char* doc) {
  OpDef op;
  op.name = name;
  op.doc = doc;
  op.minimum_operands = op.maximum_operands = 2;
  op.infer = infer_binary;
  op.evaluate = evaluate_binary<function>;
  return op;
}

double negate(double x) { return -x; }
double exponential(double x) { return std::exp(x); }
double square_root(double x) { return std::sqrt(x); }
double cosine(double x) { return std::cos(x); }
double sine(double x) { return std::sin(x); }
double hyperbolic_tangent(double x) { return std::tanh(x); }
double sum(double a, double b) { return a + b; }
double difference(double a, double b) { return a - b; }
double product(double a, double b) { return a * b; }
double quotient(double a, double b) { return a / b; }
// NaN in, NaN out, on either side.
double larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

std::vector<Type> infer_divide(const InferContext& context) {
  std::vector<Type> types = infer_binary(context);
  context.expect(is_float(types[0].element), "float tensors", types[0].str());
  return types;
}

std::vector<Type> infer_constant(const InferContext& context) {
  Shape shape;
  std::int64_t count = 1;
  for (const std::int64_t dim : context.attribute<std::vector<std::int64_t>>("shape")) {
    context.expect(dim >= 0 && dim <= (1 << 20), "dimensions of at most 2^20", std::to_string(dim));
    count *= dim;
    context.expect(count <= (1 << 20), "at most 2^20 values", std::to_string(count));
    shape.emplace_back(dim);
  }
  const auto& values = context.attribute<std::vector<double>>("values");
  context.expect(static_cast<std::int64_t>(values.size()) == count, fmt::format("{} values", count),
                 std::to_string(values.size()));
  return {Type::tensor(ElementType::f32, shape)};
}

void evaluate_constant(EvaluateContext& context) {
  context.result().values = context.attribute<std::vector<double>>("values");
}

std::vector<Type> infer_convert(const InferContext& context) {
  const Type& x = context.numeric(0);
  const auto& to = context.attribute<std::string>("to");
  try {
    const Type scalar = parse_type(to + "[]");
    context.expect(scalar.is_tensor(), "an element type", to);
    return {Type::tensor(scalar.element, x.shape)};
  } catch (const InputError&) {
    context.refuse("an element type", to);
  }
}

void evaluate_convert(EvaluateContext& context) { context.result().values = context.tensor(0).values; }

}  // namespace

OpFamily ops_elementwise() {
  OpDef divide = binary<quotient>("divide", "a / b: f[...] x f[...] -> f[...]");
  divide.infer = infer_divide;

  OpDef constant;
  constant.name = "constant";
  constant.doc = "a literal: -> f32[shape]";
  constant.minimum_operands = constant.maximum_operands = 0;
  constant.attributes = {{"shape", std::vector<std::int64_t>{}}, {"values", std::vector<double>{}}};
  constant.infer = infer_constant;
  constant.evaluate = evaluate_constant;

  OpDef convert;
  convert.name = "convert";
  convert.doc = "element type `to`, rounded to nearest even; integers wrap: [...] -> to[...]";
  convert.attributes = {{"to", std::string()}};
  convert.infer = infer_convert;
  convert.evaluate = evaluate_convert;

  return {unary<negate>("negate", "-x: f[...] -> f[...]"),
          unary<exponential>("exp", "e^x: f[...] -> f[...]"),
          unary<square_root>("sqrt", "square root: f[...] -> f[...]"),
          unary<cosine>("cos", "cosine: f[...] -> f[...]"),
          unary<sine>("sin", "sine: f[...] -> f[...]"),
          unary<hyperbolic_tangent>("tanh", "hyperbolic tangent: f[...] -> f[...]"),
          binary<sum>("add", "a + b: [...] x [...] -> [...]"),
          binary<difference>("subtract", "a - b: [...] x [...] -> [...]"),
          binary<product>("multiply", "a * b: [...] x [...] -> [...]"),
          binary<larger>("maximum", "the larger: [...] x [...] -> [...]"),
          binary<smaller>("minimum", "the smaller: [...] x [...] -> [...]"),
          std::move(divide),
          std::move(constant),
          std::move(convert)};
}

}  // namespace headrace::ir
