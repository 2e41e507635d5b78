// Composites that compile/fuse puts in place of what they expand to: one kernel where several would wait for another.
#include "ir/builder.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

namespace {

/// The results of linears on the Weights from operand `first` on.
std::vector<Type> infer_outputs(const InferContext& context, const Type& x, std::size_t first) {
  const auto& encode = context.attribute<std::string>("encode");
  context.expect(encode.empty() || is_encoding(encode), "an encoding or \"\"", encode);
  const std::size_t count = context.count() - first;
  const auto& units = context.attribute<std::vector<std::int64_t>>("units");
  context.expect(units.empty() || units.size() == count, fmt::format("{} units", count), std::to_string(units.size()));
  for (const std::int64_t unit : units) {
    context.expect(unit > 0 && unit % 32 == 0, "units of whole 32 columns", std::to_string(unit));
  }
  std::vector<Type> results;
  for (std::size_t i = first; i < context.count(); ++i) {
    const Type& w = context.weight(i, 2);
    context.expect(w.shape[1] == x.shape[1], "a Weight [N, " + x.shape[1].str() + "]", w.str());
    results.push_back(Type::tensor(ElementType::f32, {x.shape[0], w.shape[0]}));
  }
  return results;
}

std::vector<ValueId> expand_outputs(Builder& b, ValueId x, std::span<const ValueId> weights,
                                    const Attributes& attributes) {
  const auto& encode = std::get<std::string>(attributes.at("encode"));
  if (!encode.empty()) x = b.op("encode", {x}, {{"to", encode}});
  std::vector<ValueId> results;
  for (const ValueId w : weights) results.push_back(b.op("linear", {x, w}));
  return results;
}

std::vector<Type> infer_linears(const InferContext& context) {
  return infer_outputs(context, context.numeric(0, ElementType::f32, 2), 1);
}

std::vector<ValueId> expand_linears(Builder& b, std::span<const ValueId> operands, const Attributes& attributes) {
  return expand_outputs(b, operands[0], operands.subspan(1), attributes);
}

std::vector<Type> infer_norm_linears(const InferContext& context) {
  const Type& x = context.numeric(0, ElementType::f32, 2);
  const Type& g = context.numeric(1, ElementType::f32, 1);
  context.expect(g.shape[0] == x.shape[1] && x.shape[1].is_constant() && x.shape[1].constant() > 0,
                 "rows and a norm's Weight of one constant size", x.str() + " and " + g.str());
  return infer_outputs(context, x, 2);
}

std::vector<ValueId> expand_norm_linears(Builder& b, std::span<const ValueId> operands, const Attributes& attributes) {
  const ValueId h = b.op("rms_norm", operands.first(2), {{"epsilon", attributes.at("epsilon")}});
  return expand_outputs(b, h, operands.subspan(2), attributes);
}

std::vector<Type> infer_rope_append(const InferContext& context) {
  const Type& state = context.state(0, 2);
  const Type& x = context.numeric(1, ElementType::f32, 3);
  const Type& table = context.numeric(2, ElementType::f32, 2);
  const auto& pairing = context.attribute<std::string>("pairing");
  context.expect(pairing == "adjacent" || pairing == "halves", "pairing \"adjacent\" or \"halves\"", pairing);
  context.expect(x.shape[1] == state.shape[0] && x.shape[2] == state.shape[1], "rows like " + state.str(), x.str());
  context.expect(x.shape[2].is_constant() && x.shape[2].constant() % 2 == 0, "an even head width", x.str());
  context.expect(table.shape == Shape({x.shape[0], x.shape[2]}), "a table of " + shape_str({x.shape[0], x.shape[2]}),
                 table.str());
  for (const std::size_t i : {3u, 4u}) {
    const Type& each = context.numeric(i, ElementType::i32, 1);
    context.expect(each.shape[0] == x.shape[0], "a sequence and a position for each row", each.str());
  }
  return {state};
}

std::vector<ValueId> expand_rope_append(Builder& b, std::span<const ValueId> operands, const Attributes& attributes) {
  const ValueId rotated = b.op("rope", operands.subspan(1, 2), {{"pairing", attributes.at("pairing")}});
  return {b.op("append", {operands[0], rotated, operands[3], operands[4]})};
}

}  // namespace

OpFamily ops_fused() {
  constexpr int most_weights = 16;
  // `units`: columns of each result that stay with one worker. A hint for kernels; it changes no number.
  const AttributeSpec units = {"units", std::vector<std::int64_t>{}, false};
  const AttributeSpec encode = {"encode", std::string(), false};

  OpDef linears;
  linears.name = "linears";
  linears.doc = "linear on each Weight, of one encoding of x: f32[T, K] x weight[N, K] ... -> f32[T, N] ...";
  linears.minimum_operands = 2;
  linears.maximum_operands = 1 + most_weights;
  linears.attributes = {encode, units};
  linears.infer = infer_linears;
  linears.expand = expand_linears;

  OpDef norm_linears;
  norm_linears.name = "norm_linears";
  norm_linears.doc =
      "linear on each Weight, of (one encoding of) rms_norm(x, g): f32[T, K] x g [K] x weight[N, K] ... -> f32[T, N] "
      "...";
  norm_linears.minimum_operands = 3;
  norm_linears.maximum_operands = 2 + most_weights;
  norm_linears.attributes = {{"epsilon", 1e-5}, encode, units};
  norm_linears.infer = infer_norm_linears;
  norm_linears.expand = expand_norm_linears;

  OpDef rope_append;
  rope_append.name = "rope_append";
  rope_append.doc =
      "append of rope(x, table): state[K, E] x f32[T, K, E] x table f32[T, E] x sequence i32[T] x position i32[T] -> "
      "state";
  rope_append.minimum_operands = rope_append.maximum_operands = 5;
  rope_append.attributes = {{"pairing", std::string("halves")}};
  rope_append.infer = infer_rope_append;
  rope_append.expand = expand_rope_append;
  rope_append.consumes_state = true;
  return {std::move(linears), std::move(norm_linears), std::move(rope_append)};
}

}  // namespace headrace::ir
