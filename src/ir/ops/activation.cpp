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

std::vector<Type> infer_clamped_swiglu(const InferContext& context) {
  const auto limit = context.attribute<double>("limit");
  context.expect(limit > 0, "a limit above 0", fmt::format("{}", limit));
  return infer_silu_multiply(context);
}

std::vector<ValueId> expand_clamped_swiglu(Builder& b, std::span<const ValueId> operands,
                                           const Attributes& attributes) {
  const auto scalar = [&](double value) {
    return b.op("constant", {}, {{"shape", std::vector<std::int64_t>{}}, {"values", std::vector<double>{value}}});
  };
  const auto limit = std::get<double>(attributes.at("limit"));
  const ValueId gate = b.op("minimum", {operands[0], scalar(limit)});
  const ValueId up = b.op("maximum", {b.op("minimum", {operands[1], scalar(limit)}), scalar(-limit)});
  const ValueId scaled = b.op("multiply", {gate, scalar(std::get<double>(attributes.at("alpha")))});
  const ValueId denominator = b.op("add", {scalar(1), b.op("exp", {b.op("negate", {scaled})})});
  return {b.op("multiply", {b.op("divide", {gate, denominator}), b.op("add", {up, scalar(1)})})};
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

  OpDef clamped_swiglu;
  clamped_swiglu.name = "clamped_swiglu";
  clamped_swiglu.doc =
      "g sigmoid(alpha g) (u + 1) with g = gate up to limit, u = up within +- limit (gpt-oss): f32[...] x f32[...] -> "
      "f32[...]";
  clamped_swiglu.minimum_operands = clamped_swiglu.maximum_operands = 2;
  clamped_swiglu.attributes = {{"alpha", 1.702}, {"limit", 7.0}};
  clamped_swiglu.infer = infer_clamped_swiglu;
  clamped_swiglu.expand = expand_clamped_swiglu;
  return {std::move(silu), std::move(silu_multiply), std::move(clamped_swiglu)};
}

}  // namespace headrace::ir
