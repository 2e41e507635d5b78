// Causal attention over the State of each row's own sequence, heads in groups that share keys and values.
#include "ir/builder.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

namespace {

std::vector<Type> infer_attention(const InferContext& context) {
  const Type& q = context.numeric(0, ElementType::f32, 3);
  const Type& keys = context.state(1, 2);
  const Type& values = context.state(2, 2);
  const Type& sequence = context.numeric(3, ElementType::i32, 1);
  const Type& position = context.numeric(4, ElementType::i32, 1);
  context.expect(keys.shape == values.shape && keys.shape[1] == q.shape[2],
                 "keys and values [K, " + q.shape[2].str() + "]", keys.str() + " and " + values.str());
  context.expect(sequence.shape[0] == q.shape[0] && position.shape[0] == q.shape[0],
                 "a sequence and a position for each row", sequence.str() + " and " + position.str());
  const bool constant = q.shape[1].is_constant() && q.shape[2].is_constant() && keys.shape[0].is_constant();
  context.expect(constant && keys.shape[0].constant() > 0 && q.shape[1].constant() % keys.shape[0].constant() == 0,
                 "heads in whole groups", q.str() + " over " + keys.str());
  return {q};
}

/// Vaswani et al. 2017 with grouped heads (arXiv 2305.13245). Quadratic in memory: a definition, not a schedule.
std::vector<ValueId> expand_attention(Builder& b, std::span<const ValueId> operands, const Attributes& attributes) {
  const Shape shape = b.type(operands[0]).shape;
  const std::string rows = shape[0].str();
  const std::int64_t heads = shape[1].constant();
  const std::int64_t width = shape[2].constant();
  const std::int64_t groups = b.type(operands[1]).shape[0].constant();
  const std::int64_t shared = heads / groups;
  using Integers = std::vector<std::int64_t>;
  const auto scalar = [&](double value) {
    return b.op("constant", {}, {{"shape", Integers{}}, {"values", std::vector<double>{value}}});
  };
  const auto own = [&](ValueId state) { return b.op("gather", {b.op("read_state", {state}), operands[3]}); };
  const ValueId keys = b.op("transpose", {own(operands[1])}, {{"order", Integers{0, 2, 3, 1}}});    // [T, K, E, P]
  const ValueId values = b.op("transpose", {own(operands[2])}, {{"order", Integers{0, 2, 1, 3}}});  // [T, K, P, E]
  const ValueId q =
      b.op("reshape", {operands[0]}, {{"shape", fmt::format("{}, {}, {}, {}", rows, groups, shared, width)}});
  const ValueId scores =
      b.op("multiply", {b.op("matmul", {q, keys}), scalar(std::get<double>(attributes.at("scale")))});
  const ValueId positions = b.op("iota", {}, {{"size", std::string("P")}});
  const ValueId own_position = b.op("reshape", {operands[4]}, {{"shape", rows + ", 1, 1, 1"}});
  const ValueId visible = b.op("less_equal", {positions, own_position});
  const ValueId masked = b.op("select", {visible, scores, scalar(-1e30)});
  const ValueId mixed = b.op("matmul", {b.op("softmax", {masked}), values});
  return {b.op("reshape", {mixed}, {{"shape", fmt::format("{}, {}, {}", rows, heads, width)}})};
}

}  // namespace

OpFamily ops_attention() {
  OpDef attention;
  attention.name = "attention";
  attention.doc =
      "softmax(q k^T scale) v over positions <= the row's own: f32[T, H, E] x state[K, E] x state[K, E] x sequence "
      "i32[T] x position i32[T] -> f32[T, H, E]";
  attention.minimum_operands = attention.maximum_operands = 5;
  attention.attributes = {{"scale", 1.0}};
  attention.infer = infer_attention;
  attention.expand = expand_attention;
  return {std::move(attention)};
}

}  // namespace headrace::ir
