// Composite activations.
#include "ir/builder.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

namespace {

std::vector<Type> infer_silu(const InferContext& context) { return {context.numeric(0, ElementType::f32, -1)}; }

std::vector<ValueId> expand_silu(Builder& b, std::span<const ValueId> operands, const Attributes&) {
  const ValueId one =
      b.op("constant", {}, {{"shape", std::vector<std::int64_t>{}}, {"values", std::vector<double>{1.0}}});
  const ValueId denominator = b.op("add", {one, b.op("exp", {b.op("negate", {operands[0]})})});
  return {b.op("divide", {operands[0], denominator})};
}

std::vector<Type> infer_silu_multiply(const InferContext& context) {
  const Type& gate = context.numeric(0, ElementType::f32, -1);
  const Type& up = context.numeric(1, ElementType::f32, -1);
  context.expect(gate.shape == up.shape, "two tensors of one shape", gate.str() + " and " + up.str());
  return {gate};
}

std::vector<ValueId> expand_silu_multiply(Builder& b, std::span<const ValueId> operands, const Attributes&) {
  return {b.op("multiply", {b.op("silu", {operands[0]}), operands[1]})};
}

}  // namespace

OpFamily ops_activation() {
  OpDef silu;
  silu.name = "silu";
  silu.doc = "x / (1 + exp(-x)): f32[...] -> f32[...]";
  silu.infer = infer_silu;
  silu.expand = expand_silu;

  OpDef silu_multiply;
  silu_multiply.name = "silu_multiply";
  silu_multiply.doc = "silu(gate) * up (SwiGLU, arXiv 2002.05202): f32[...] x f32[...] -> f32[...]";
  silu_multiply.minimum_operands = silu_multiply.maximum_operands = 2;
  silu_multiply.infer = infer_silu_multiply;
  silu_multiply.expand = expand_silu_multiply;
  return {std::move(silu), std::move(silu_multiply)};
}

}  // namespace headrace::ir
