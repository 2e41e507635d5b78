// Composites on Weights: linear and the embedding of tokens.
#include "ir/builder.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

namespace {

std::vector<Type> infer_linear(const InferContext& context) {
  const Type& x = context.operand(0);
  const bool plain = x.is_tensor() && x.element == ElementType::f32;
  context.expect((plain || x.is_encoded()) && x.shape.size() == 2, "f32[T, K] or an encoding of it as operand 0",
                 x.str());
  const Type& w = context.weight(1, 2);
  context.expect(w.shape[1] == x.shape[1], "a Weight [N, " + x.shape[1].str() + "]", w.str());
  return {Type::tensor(ElementType::f32, {x.shape[0], w.shape[0]})};
}

std::vector<ValueId> expand_linear(Builder& b, std::span<const ValueId> operands, const Attributes&) {
  ValueId x = operands[0];
  if (b.type(x).is_encoded()) x = b.op("decode", {x});
  const ValueId transposed = b.op("transpose", {operands[1]}, {{"order", std::vector<std::int64_t>{1, 0}}});
  return {b.op("matmul", {x, transposed})};
}

std::vector<Type> infer_embedding(const InferContext& context) {
  const Type& w = context.weight(0, 2);
  const Type& ids = context.numeric(1, ElementType::i32, 1);
  return {Type::tensor(ElementType::f32, {ids.shape[0], w.shape[1]})};
}

std::vector<ValueId> expand_embedding(Builder& b, std::span<const ValueId> operands, const Attributes&) {
  return {b.op("gather", operands)};
}

}  // namespace

OpFamily ops_linear() {
  OpDef linear;
  linear.name = "linear";
  linear.doc = "x times the transposed Weight: f32[T, K] (or a16) x weight[N, K] -> f32[T, N]";
  linear.minimum_operands = linear.maximum_operands = 2;
  linear.infer = infer_linear;
  linear.expand = expand_linear;

  OpDef embedding;
  embedding.name = "embedding";
  embedding.doc = "rows of a Weight: weight[V, D] x i32[T] -> f32[T, D]";
  embedding.minimum_operands = embedding.maximum_operands = 2;
  embedding.infer = infer_embedding;
  embedding.expand = expand_embedding;
  return {std::move(linear), std::move(embedding)};
}

}  // namespace headrace::ir
