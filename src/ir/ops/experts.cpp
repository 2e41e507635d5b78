// What layers of mixtures of experts are made of: the choice of experts, the experts' linear, the sum over slots.
// Rows T, slots of a row A (experts that it uses), experts X.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/builder.hpp"
#include "ir/interpreter.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

namespace {

using Integers = std::vector<std::int64_t>;

std::string joined(const Shape& shape) {
  std::string text;
  for (const Dim& dim : shape) text += (text.empty() ? "" : ", ") + dim.str();
  return text;
}

std::vector<Type> infer_top_k(const InferContext& context) {
  const Type& x = context.numeric(0, ElementType::f32, -1);
  const auto k = context.attribute<std::int64_t>("k");
  context.expect(!x.shape.empty() && x.shape.back().is_constant(), "a last axis of constant size", x.str());
  context.expect(k >= 1 && k <= x.shape.back().constant(), "k in [1, " + x.shape.back().str() + "]", std::to_string(k));
  Shape shape = x.shape;
  shape.back() = k;
  return {Type::tensor(ElementType::i32, shape)};
}

void evaluate_top_k(EvaluateContext& context) {
  const Tensor& x = context.tensor(0);
  Tensor& y = context.result();
  const auto width = static_cast<std::size_t>(x.shape.back());
  const auto k = static_cast<std::size_t>(y.shape.back());
  std::vector<std::size_t> order(width);
  for (std::size_t row = 0; row * width < x.values.size(); ++row) {
    const auto value = [&](std::size_t i) { return x.values[row * width + i]; };
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return value(a) > value(b) || (std::isnan(value(b)) && !std::isnan(value(a)));
    });
    for (std::size_t i = 0; i < k; ++i) y.values[row * k + i] = static_cast<double>(order[i]);
  }
}

std::vector<Type> infer_take_along(const InferContext& context) {
  const Type& x = context.numeric(0);
  const Type& ids = context.numeric(1, ElementType::i32, -1);
  Shape shape = x.shape;
  context.expect(!shape.empty() && shape.back().is_constant(), "a last axis of constant size", x.str());
  context.expect(ids.shape.size() == shape.size(), "ids of the tensor's rank", ids.str() + " for " + x.str());
  shape.back() = ids.shape.back();
  context.expect(shape == ids.shape, "ids " + shape_str(shape), ids.str());
  return {Type::tensor(x.element, shape)};
}

void evaluate_take_along(EvaluateContext& context) {
  const Tensor& x = context.tensor(0);
  const Tensor& ids = context.tensor(1);
  Tensor& y = context.result();
  const std::int64_t width = x.shape.back();
  const std::int64_t count = y.shape.back();
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    const auto id = static_cast<std::int64_t>(ids.values[i]);
    if (id < 0 || id >= width) fail<InputError>("[take_along] expected an index in [0, {}), got {}", width, id);
    y.values[i] = x.values.at(static_cast<std::size_t>(static_cast<std::int64_t>(i) / count * width + id));
  }
}

std::vector<Type> infer_expert_linear(const InferContext& context) {
  const Type& x = context.operand(0);
  const Type& w = context.weight(1, 3);
  const Type& ids = context.numeric(2, ElementType::i32, 2);
  const bool plain = x.is_tensor() && x.element == ElementType::f32;
  context.expect(plain || x.is_encoded(), "f32[T, K] or f32[T, A, K] or an encoding of one as operand 0", x.str());
  const Shape shared = {ids.shape[0], w.shape[2]};
  const Shape own = {ids.shape[0], ids.shape[1], w.shape[2]};
  context.expect(x.shape == shared || x.shape == own, shape_str(shared) + " or " + shape_str(own) + " as operand 0",
                 x.str());
  context.expect(ids.shape[1].is_constant(), "a constant number of slots", ids.str());
  if (context.count() == 4) {
    const Type& bias = context.weight(3, 3);
    context.expect(bias.shape == Shape({w.shape[0], w.shape[1], 1}), "a bias " + shape_str({w.shape[0], w.shape[1], 1}),
                   bias.str());
  }
  return {Type::tensor(ElementType::f32, {ids.shape[0], ids.shape[1], w.shape[1]})};
}

/// Gathers whole experts: a definition, not a schedule.
std::vector<ValueId> expand_expert_linear(Builder& b, std::span<const ValueId> operands, const Attributes&) {
  ValueId x = operands[0];
  if (b.type(x).is_encoded()) x = b.op("decode", {x});
  const Shape ids = b.type(operands[2]).shape;
  const Shape weight = b.type(operands[1]).shape;
  const Dim pairs = ids[0] * ids[1];
  const auto reshape = [&](ValueId value, const Shape& shape) {
    return b.op("reshape", {value}, {{"shape", joined(shape)}});
  };
  if (b.type(x).shape.size() == 2) {
    const ValueId column = reshape(x, {ids[0], 1, weight[2]});
    x = b.op("broadcast", {column}, {{"shape", joined({ids[0], ids[1], weight[2]})}});
  }
  const ValueId flat_ids = reshape(operands[2], {pairs});
  const ValueId experts = b.op("gather", {operands[1], flat_ids});
  const ValueId transposed = b.op("transpose", {experts}, {{"order", Integers{0, 2, 1}}});
  const ValueId products = b.op("matmul", {reshape(x, {pairs, 1, weight[2]}), transposed});
  const Shape result = {ids[0], ids[1], weight[1]};
  ValueId y = reshape(products, result);
  if (operands.size() == 4) y = b.op("add", {y, reshape(b.op("gather", {operands[3], flat_ids}), result)});
  return {y};
}

std::vector<Type> infer_weighted_sum(const InferContext& context) {
  const Type& y = context.numeric(0, ElementType::f32, 3);
  const Type& weights = context.numeric(1, ElementType::f32, 2);
  context.expect(weights.shape == Shape({y.shape[0], y.shape[1]}), "weights " + shape_str({y.shape[0], y.shape[1]}),
                 weights.str());
  context.expect(y.shape[1].is_constant() && y.shape[1].constant() > 0, "a constant number of slots", y.str());
  return {Type::tensor(ElementType::f32, {y.shape[0], y.shape[2]})};
}

std::vector<ValueId> expand_weighted_sum(Builder& b, std::span<const ValueId> operands, const Attributes&) {
  const Shape shape = b.type(operands[0]).shape;
  const ValueId column = b.op("reshape", {operands[1]}, {{"shape", joined({shape[0], shape[1], 1})}});
  const ValueId products = b.op("multiply", {operands[0], column});
  const ValueId sum = b.op("reduce_sum", {products}, {{"axis", std::int64_t{1}}});
  return {b.op("reshape", {sum}, {{"shape", joined({shape[0], shape[2]})}})};
}

}  // namespace

OpFamily ops_experts() {
  OpDef top_k;
  top_k.name = "top_k";
  top_k.doc =
      "ids of the k largest along the last axis, largest first, of equals the lower id first, NaN last: "
      "f32[..., N] -> i32[..., k]";
  top_k.attributes = {{"k", std::int64_t{1}}};
  top_k.infer = infer_top_k;
  top_k.evaluate = evaluate_top_k;

  OpDef take_along;
  take_along.name = "take_along";
  take_along.doc = "elements of each row by index: [..., N] x i32[..., A] -> [..., A]";
  take_along.minimum_operands = take_along.maximum_operands = 2;
  take_along.infer = infer_take_along;
  take_along.evaluate = evaluate_take_along;

  OpDef expert_linear;
  expert_linear.name = "expert_linear";
  expert_linear.doc =
      "for each row and slot x times the transposed Weight of the slot's expert, plus its bias: f32[T, K] or "
      "f32[T, A, K] (or a16) x weight[X, N, K] x i32[T, A] x weight[X, N, 1] or nothing -> f32[T, A, N]";
  expert_linear.minimum_operands = 3;
  expert_linear.maximum_operands = 4;
  expert_linear.infer = infer_expert_linear;
  expert_linear.expand = expand_expert_linear;

  OpDef weighted_sum;
  weighted_sum.name = "weighted_sum";
  weighted_sum.doc = "sum over slots of each slot's row times its weight: f32[T, A, N] x f32[T, A] -> f32[T, N]";
  weighted_sum.minimum_operands = weighted_sum.maximum_operands = 2;
  weighted_sum.infer = infer_weighted_sum;
  weighted_sum.expand = expand_weighted_sum;
  return {std::move(top_k), std::move(take_along), std::move(expert_linear), std::move(weighted_sum)};
}

}  // namespace headrace::ir
