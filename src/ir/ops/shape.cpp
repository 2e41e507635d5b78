// Primitives that move elements: reshape, transpose, slice, concat, broadcast, iota, gather.
#include <algorithm>

#include "ir/interpreter.hpp"
#include "ir/op.hpp"
#include "ir/reference.hpp"

namespace headrace::ir {

namespace {

using Integers = std::vector<std::int64_t>;

/// Shapes are attributes as text, since they may hold symbols: "T, 9, 64".
Shape parse_shape(const InferContext& context, std::string_view name) {
  const auto& text = context.attribute<std::string>(name);
  try {
    return parse_type("f32[" + text + "]").shape;
  } catch (const InputError&) {
    context.refuse(std::string(name) + " as sizes joined by commas", "\"" + text + "\"");
  }
}

std::vector<Type> infer_reshape(const InferContext& context) {
  const Type& x = context.numeric(0);
  const Shape shape = parse_shape(context, "shape");
  context.expect(element_count(shape) == element_count(x.shape),
                 "a shape of " + element_count(x.shape).str() + " elements", shape_str(shape));
  return {Type::tensor(x.element, shape)};
}

void evaluate_reshape(EvaluateContext& context) { context.result().values = context.tensor(0).values; }

std::vector<Type> infer_transpose(const InferContext& context) {
  const Type& x = context.numeric(0);
  const auto& order = context.attribute<Integers>("order");
  Integers sorted = order;
  std::sort(sorted.begin(), sorted.end());
  bool permutation = order.size() == x.shape.size();
  for (std::size_t i = 0; permutation && i < sorted.size(); ++i)
    permutation = sorted[i] == static_cast<std::int64_t>(i);
  context.expect(permutation, "a permutation of the axes of " + x.str(), attribute_text(order));
  Shape shape;
  for (const std::int64_t axis : order) shape.push_back(x.shape[static_cast<std::size_t>(axis)]);
  return {Type::tensor(x.element, shape)};
}

void evaluate_transpose(EvaluateContext& context) {
  const Tensor& x = context.tensor(0);
  Tensor& y = context.result();
  const Integers own = row_major_strides(x.shape);
  Integers strides;
  for (const std::int64_t axis : context.attribute<Integers>("order"))
    strides.push_back(own[static_cast<std::size_t>(axis)]);
  for_each_index(y.shape, [&](std::int64_t flat, std::span<const std::int64_t> index) {
    y.values[static_cast<std::size_t>(flat)] = x.values.at(static_cast<std::size_t>(dot(index, strides)));
  });
}

std::vector<Type> infer_slice(const InferContext& context) {
  const Type& x = context.numeric(0);
  const std::size_t axis = context.axis("axis", x.shape.size());
  const auto begin = context.attribute<std::int64_t>("begin");
  const auto end = context.attribute<std::int64_t>("end");
  context.expect(x.shape[axis].is_constant(), "a constant size along the axis", x.str());
  context.expect(0 <= begin && begin <= end && end <= x.shape[axis].constant(),
                 "a range in [0, " + x.shape[axis].str() + "]", fmt::format("[{}, {})", begin, end));
  Shape shape = x.shape;
  shape[axis] = end - begin;
  return {Type::tensor(x.element, shape)};
}

void evaluate_slice(EvaluateContext& context) {
  const Tensor& x = context.tensor(0);
  Tensor& y = context.result();
  auto axis = context.attribute<std::int64_t>("axis");
  if (axis < 0) axis += static_cast<std::int64_t>(x.shape.size());
  const Integers strides = row_major_strides(x.shape);
  const std::int64_t start = context.attribute<std::int64_t>("begin") * strides[static_cast<std::size_t>(axis)];
  for_each_index(y.shape, [&](std::int64_t flat, std::span<const std::int64_t> index) {
    y.values[static_cast<std::size_t>(flat)] = x.values.at(static_cast<std::size_t>(start + dot(index, strides)));
  });
}

std::vector<Type> infer_concat(const InferContext& context) {
  const Type& first = context.numeric(0);
  const std::size_t axis = context.axis("axis", first.shape.size());
  Shape shape = first.shape;
  for (std::size_t i = 1; i < context.count(); ++i) {
    const Type& next = context.numeric(i);
    bool fits = next.element == first.element && next.shape.size() == shape.size();
    for (std::size_t d = 0; fits && d < shape.size(); ++d) fits = d == axis || next.shape[d] == first.shape[d];
    context.expect(fits, "tensors like " + first.str() + " but for one axis", next.str());
    shape[axis] = shape[axis] + next.shape[axis];
  }
  return {Type::tensor(first.element, shape)};
}

void evaluate_concat(EvaluateContext& context) {
  Tensor& y = context.result();
  auto axis = context.attribute<std::int64_t>("axis");
  if (axis < 0) axis += static_cast<std::int64_t>(y.shape.size());
  std::int64_t outer = 1;
  for (std::size_t i = 0; i < static_cast<std::size_t>(axis); ++i) outer *= y.shape[i];
  auto out = y.values.begin();
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::size_t i = 0; i < context.count(); ++i) {
      const Tensor& x = context.tensor(i);
      const auto run = static_cast<std::int64_t>(x.values.size()) / outer;
      out = std::copy_n(x.values.begin() + o * run, run, out);
    }
  }
}

std::vector<Type> infer_broadcast(const InferContext& context) {
  const Type& x = context.numeric(0);
  const Shape shape = parse_shape(context, "shape");
  context.expect(broadcast_shapes(context, x.shape, shape) == shape, "a shape that " + x.str() + " broadcasts to",
                 shape_str(shape));
  return {Type::tensor(x.element, shape)};
}

void evaluate_broadcast(EvaluateContext& context) {
  const Tensor& x = context.tensor(0);
  Tensor& y = context.result();
  const Integers strides = broadcast_strides(x.shape, y.shape);
  for_each_index(y.shape, [&](std::int64_t flat, std::span<const std::int64_t> index) {
    y.values[static_cast<std::size_t>(flat)] = x.values.at(static_cast<std::size_t>(dot(index, strides)));
  });
}

std::vector<Type> infer_iota(const InferContext& context) {
  const Shape shape = parse_shape(context, "size");
  context.expect(shape.size() == 1, "one size", context.attribute<std::string>("size"));
  return {Type::tensor(ElementType::i32, shape)};
}

void evaluate_iota(EvaluateContext& context) {
  Tensor& y = context.result();
  for (std::size_t i = 0; i < y.values.size(); ++i) y.values[i] = static_cast<double>(i);
}

std::vector<Type> infer_gather(const InferContext& context) {
  const Type& x = context.numeric(0);
  const Type& indices = context.numeric(1, ElementType::i32, 1);
  context.expect(!x.shape.empty(), "a tensor of rank 1 or more", x.str());
  Shape shape = x.shape;
  shape[0] = indices.shape[0];
  return {Type::tensor(x.element, shape)};
}

void evaluate_gather(EvaluateContext& context) {
  const Tensor& x = context.tensor(0);
  const Tensor& indices = context.tensor(1);
  Tensor& y = context.result();
  const std::int64_t rows = x.shape[0];
  const std::int64_t row = rows == 0 ? 0 : static_cast<std::int64_t>(x.values.size()) / rows;
  for (std::size_t i = 0; i < indices.values.size(); ++i) {
    const auto index = static_cast<std::int64_t>(indices.values[i]);
    if (index < 0 || index >= rows) fail<InputError>("[gather] expected an index in [0, {}), got {}", rows, index);
    std::copy_n(x.values.begin() + index * row, row, y.values.begin() + static_cast<std::int64_t>(i) * row);
  }
}

OpDef op(const char* name, const char* doc, int minimum, int maximum, std::vector<AttributeSpec> attributes,
         std::vector<Type> (*infer)(const InferContext&), void (*evaluate)(EvaluateContext&)) {
  OpDef result;
  result.name = name;
  result.doc = doc;
  result.minimum_operands = minimum;
  result.maximum_operands = maximum;
  result.attributes = std::move(attributes);
  result.infer = infer;
  result.evaluate = evaluate;
  return result;
}

}  // namespace

OpFamily ops_shape() {
  const AttributeSpec axis{"axis", std::int64_t{0}};
  return {op("reshape", "the same elements in row-major order: [...] -> [shape]", 1, 1, {{"shape", std::string()}},
             infer_reshape, evaluate_reshape),
          op("transpose", "axes in another order: [...] -> [...]", 1, 1, {{"order", Integers{}}}, infer_transpose,
             evaluate_transpose),
          op("slice", "the range [begin, end) of one axis of constant size: [...] -> [...]", 1, 1,
             {axis, {"begin", std::int64_t{0}}, {"end", std::int64_t{0}}}, infer_slice, evaluate_slice),
          op("concat", "tensors joined along one axis: [...], [...] -> [...]", 1, 64, {axis}, infer_concat,
             evaluate_concat),
          op("broadcast", "stretched to a shape as numpy does: [...] -> [shape]", 1, 1, {{"shape", std::string()}},
             infer_broadcast, evaluate_broadcast),
          op("iota", "0, 1, 2 …: -> i32[size]", 0, 0, {{"size", std::string()}}, infer_iota, evaluate_iota),
          op("gather", "rows by index: [N, ...] x i32[T] -> [T, ...]", 2, 2, {}, infer_gather, evaluate_gather)};
}

}  // namespace headrace::ir
