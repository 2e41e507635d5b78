// Composites that normalize the last axis.
#include "ir/builder.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

namespace {

ValueId scalar(Builder& b, double value) {
  return b.op("constant", {}, {{"shape", std::vector<std::int64_t>{}}, {"values", std::vector<double>{value}}});
}

std::vector<Type> infer_rms_norm(const InferContext& context) {
  const Type& x = context.numeric(0, ElementType::f32, 2);
  const Type& w = context.numeric(1, ElementType::f32, 1);
  context.expect(w.shape[0] == x.shape[1], "a Weight [" + x.shape[1].str() + "]", w.str());
  context.expect(x.shape[1].is_constant() && x.shape[1].constant() > 0, "rows of constant size", x.str());
  return {x};
}

/// Zhang and Sennrich 2019, arXiv 1910.07467.
std::vector<ValueId> expand_rms_norm(Builder& b, std::span<const ValueId> operands, const Attributes& attributes) {
  const ValueId x = operands[0];
  const auto width = static_cast<double>(b.type(x).shape[1].constant());
  const ValueId squares = b.op("reduce_sum", {b.op("multiply", {x, x})});
  const ValueId mean = b.op("divide", {squares, scalar(b, width)});
  const ValueId shifted = b.op("add", {mean, scalar(b, std::get<double>(attributes.at("epsilon")))});
  const ValueId normal = b.op("divide", {x, b.op("sqrt", {shifted})});
  return {b.op("multiply", {normal, operands[1]})};
}

std::vector<Type> infer_softmax(const InferContext& context) {
  const Type& x = context.numeric(0, ElementType::f32, -1);
  context.expect(!x.shape.empty(), "a tensor of rank 1 or more", x.str());
  return {x};
}

std::vector<ValueId> expand_softmax(Builder& b, std::span<const ValueId> operands, const Attributes&) {
  const ValueId shifted = b.op("subtract", {operands[0], b.op("reduce_max", {operands[0]})});
  const ValueId exponentials = b.op("exp", {shifted});
  return {b.op("divide", {exponentials, b.op("reduce_sum", {exponentials})})};
}

}  // namespace

OpFamily ops_normalization() {
  OpDef rms_norm;
  rms_norm.name = "rms_norm";
  rms_norm.doc = "x / sqrt(mean(x^2) + epsilon) * w: f32[T, D] x [D] -> f32[T, D]";
  rms_norm.minimum_operands = rms_norm.maximum_operands = 2;
  rms_norm.attributes = {{"epsilon", 1e-5}};
  rms_norm.infer = infer_rms_norm;
  rms_norm.expand = expand_rms_norm;

  OpDef softmax;
  softmax.name = "softmax";
  softmax.doc = "exp(x) / sum exp(x) along the last axis: f32[..., N] -> f32[..., N]";
  softmax.infer = infer_softmax;
  softmax.expand = expand_softmax;
  return {std::move(rms_norm), std::move(softmax)};
}

}  // namespace headrace::ir
