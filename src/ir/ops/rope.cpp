// Rotary position embedding (Su et al. 2021, arXiv 2104.09864): a table of angles once a step, then rotations.
#include "ir/builder.hpp"
#include "ir/op.hpp"

namespace headrace::ir {

namespace {

std::vector<Type> infer_rope_table(const InferContext& context) {
  const Type& position = context.numeric(0, ElementType::i32, 1);
  const Type& frequencies = context.numeric(1, ElementType::f32, 1);
  return {Type::tensor(ElementType::f32, {position.shape[0], 2 * frequencies.shape[0]})};
}

/// The angle position * frequency is taken in f64: at 100,000 positions f32 angles are off by 0.004.
std::vector<ValueId> expand_rope_table(Builder& b, std::span<const ValueId> operands, const Attributes& attributes) {
  const auto rows = b.type(operands[0]).shape[0];
  const Attributes wide = {{"to", std::string("f64")}};
  const ValueId position = b.op("reshape", {b.op("convert", {operands[0]}, wide)}, {{"shape", rows.str() + ", 1"}});
  const ValueId angle = b.op("multiply", {position, b.op("convert", {operands[1]}, wide)});
  ValueId table = b.op("concat", {b.op("cos", {angle}), b.op("sin", {angle})}, {{"axis", std::int64_t{1}}});
  // A magnitude is an f32 number, as kernels have it.
  const auto magnitude = static_cast<double>(static_cast<float>(std::get<double>(attributes.at("magnitude"))));
  if (magnitude != 1) {
    const Attributes scalar = {{"shape", std::vector<std::int64_t>{}}, {"values", std::vector<double>{magnitude}}};
    table = b.op("multiply", {table, b.op("convert", {b.op("constant", {}, scalar)}, wide)});
  }
  return {b.op("convert", {table}, {{"to", std::string("f32")}})};
}

std::vector<Type> infer_rope(const InferContext& context) {
  const Type& x = context.numeric(0, ElementType::f32, 3);
  const Type& table = context.numeric(1, ElementType::f32, 2);
  const auto& pairing = context.attribute<std::string>("pairing");
  context.expect(pairing == "adjacent" || pairing == "halves", "pairing \"adjacent\" or \"halves\"", pairing);
  context.expect(x.shape[2].is_constant() && x.shape[2].constant() % 2 == 0, "an even head width", x.str());
  context.expect(table.shape == Shape({x.shape[0], x.shape[2]}), "a table of " + shape_str({x.shape[0], x.shape[2]}),
                 table.str());
  return {x};
}

std::vector<ValueId> expand_rope(Builder& b, std::span<const ValueId> operands, const Attributes& attributes) {
  const Shape shape = b.type(operands[0]).shape;
  const std::int64_t width = shape[2].constant();
  const std::int64_t half = width / 2;
  const bool adjacent = std::get<std::string>(attributes.at("pairing")) == "adjacent";
  const std::string heads = shape[0].str() + ", " + shape[1].str() + ", ";
  const auto part = [&](ValueId x, std::int64_t axis, std::int64_t begin, std::int64_t end) {
    return b.op("slice", {x}, {{"axis", axis}, {"begin", begin}, {"end", end}});
  };
  const auto table_part = [&](std::int64_t begin) {
    return b.op("reshape", {part(operands[1], 1, begin, begin + half)},
                {{"shape", shape[0].str() + ", 1, " + std::to_string(half)}});
  };
  const ValueId cosine = table_part(0);
  const ValueId sine = table_part(half);
  ValueId first = 0;
  ValueId second = 0;
  if (adjacent) {
    const ValueId pairs = b.op("reshape", {operands[0]}, {{"shape", heads + std::to_string(half) + ", 2"}});
    const Attributes flat = {{"shape", heads + std::to_string(half)}};
    first = b.op("reshape", {part(pairs, 3, 0, 1)}, flat);
    second = b.op("reshape", {part(pairs, 3, 1, 2)}, flat);
  } else {
    first = part(operands[0], 2, 0, half);
    second = part(operands[0], 2, half, width);
  }
  const auto times = [&](ValueId x, ValueId y) { return b.op("multiply", {x, y}); };
  const ValueId low = b.op("subtract", {times(first, cosine), times(second, sine)});
  const ValueId high = b.op("add", {times(second, cosine), times(first, sine)});
  if (!adjacent) return {b.op("concat", {low, high}, {{"axis", std::int64_t{2}}})};
  const Attributes column = {{"shape", heads + std::to_string(half) + ", 1"}};
  const ValueId pairs =
      b.op("concat", {b.op("reshape", {low}, column), b.op("reshape", {high}, column)}, {{"axis", std::int64_t{3}}});
  return {b.op("reshape", {pairs}, {{"shape", heads + std::to_string(width)}})};
}

}  // namespace

OpFamily ops_rope() {
  OpDef table;
  table.name = "rope_table";
  table.doc = "cosines, then sines of position * frequency, times a magnitude: i32[T] x f32[E/2] -> f32[T, E]";
  table.minimum_operands = table.maximum_operands = 2;
  table.attributes = {{"magnitude", 1.0, false}};
  table.infer = infer_rope_table;
  table.expand = expand_rope_table;

  OpDef rope;
  rope.name = "rope";
  rope.doc =
      "rotates pairs, adjacent elements or element i of both halves: f32[T, H, E] x table f32[T, E] -> f32[T, H, E]";
  rope.minimum_operands = rope.maximum_operands = 2;
  rope.attributes = {{"pairing", std::string("halves")}};
  rope.infer = infer_rope;
  rope.expand = expand_rope;
  return {std::move(table), std::move(rope)};
}

}  // namespace headrace::ir
