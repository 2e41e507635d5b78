// Causal attention over the State of each row's own sequence, heads in groups that share keys and values; windows and
// sinks.
#include <fmt/format.h>

#include "ir/builder.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

namespace {

/// The expansion makes the window of an f32, which is exact up to here.
constexpr std::int64_t largest_window = std::int64_t{1} << 24;

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
  if (context.count() > 5) {
    const Type& sinks = context.numeric(5, ElementType::f32, 1);
    context.expect(sinks.shape[0] == q.shape[1], "a sink for each of " + q.shape[1].str() + " heads", sinks.str());
  }
  const auto window = context.attribute<std::int64_t>("window");
  context.expect(window >= 0 && window <= largest_window, fmt::format("a window in [0, {}]", largest_window),
                 std::to_string(window));
  return {q};
}

/// softmax with one more logit a head, `sinks` [H], that has no value (gpt-oss; Xiao et al. 2023, arXiv 2309.17453).
/// scores [T, K, H / K, P].
ValueId softmax_with_sinks(Builder& b, ValueId scores, ValueId sinks) {
  const Shape shape = b.type(scores).shape;
  const ValueId sink = b.op("reshape", {sinks}, {{"shape", fmt::format("{}, {}, 1", shape[1].str(), shape[2].str())}});
  const ValueId largest = b.op("maximum", {b.op("reduce_max", {scores}), sink});
  const ValueId exponentials = b.op("exp", {b.op("subtract", {scores, largest})});
  const ValueId of_sink = b.op("exp", {b.op("subtract", {sink, largest})});
  return b.op("divide", {exponentials, b.op("add", {b.op("reduce_sum", {exponentials}), of_sink})});
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
  ValueId masked = b.op("select", {visible, scores, scalar(-1e30)});
  if (const auto window = std::get<std::int64_t>(attributes.at("window")); window > 0) {
    const ValueId size = b.op("convert", {scalar(static_cast<double>(window))}, {{"to", std::string("i32")}});
    const ValueId recent = b.op("less", {b.op("subtract", {own_position, positions}), size});
    masked = b.op("select", {recent, masked, scalar(-1e30)});
  }
  const bool has_sinks = operands.size() > 5;
  const ValueId weights = has_sinks ? softmax_with_sinks(b, masked, operands[5]) : b.op("softmax", {masked});
  const ValueId mixed = b.op("matmul", {weights, values});
  return {b.op("reshape", {mixed}, {{"shape", fmt::format("{}, {}, {}", rows, heads, width)}})};
}

}  // namespace

OpFamily ops_attention() {
  OpDef attention;
  attention.name = "attention";
  attention.doc =
      "softmax(q k^T scale) v over positions <= the row's own and > it - window (0: none); sinks are logits without a "
      "value: f32[T, H, E] x state[K, E] x state[K, E] x sequence i32[T] x position i32[T] (x sinks f32[H]) -> f32[T, "
      "H, "
      "E]";
  attention.minimum_operands = 5;
  attention.maximum_operands = 6;
  attention.attributes = {{"scale", 1.0}, {"window", std::int64_t{0}, false}};
  attention.infer = infer_attention;
  attention.expand = expand_attention;
  return {std::move(attention)};
}

}  // namespace headrace::ir
