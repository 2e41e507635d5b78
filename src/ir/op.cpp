#include "ir/op.hpp"

#include <algorithm>
#include <map>

namespace headrace::ir {

namespace {

const std::map<std::string_view, const OpDef*>& index() {
  static const std::map<std::string_view, const OpDef*> by_name = [] {
    std::map<std::string_view, const OpDef*> map;
    for (const OpFamily& family : op_families()) {
      for (const OpDef& op : family) {
        require(map.emplace(op.name, &op).second, "two ops have one name");
        require((op.evaluate != nullptr) != (op.expand != nullptr), "an op has either a reference or an expansion");
      }
    }
    return map;
  }();
  return by_name;
}

}  // namespace

const OpDef* find_op(std::string_view name) {
  const auto place = index().find(name);
  return place == index().end() ? nullptr : place->second;
}

std::vector<const OpDef*> all_ops() {
  std::vector<const OpDef*> ops;
  for (const auto& [name, op] : index()) ops.push_back(op);
  return ops;
}

void InferContext::refuse(const std::string& expected, const std::string& got) const {
  fail<InputError>("[{}] expected {}, got {}", op_, expected, got);
}

const Type& InferContext::numeric(std::size_t index) const {
  const Type& type = operand(index);
  expect(type.is_tensor() || type.is_weight(), fmt::format("a tensor as operand {}", index), type.str());
  return type;
}

const Type& InferContext::numeric(std::size_t index, ElementType element, int rank) const {
  const Type& type = numeric(index);
  expect(type.element == element && (rank < 0 || type.shape.size() == static_cast<std::size_t>(rank)),
         fmt::format("{} of {} as operand {}", element_name(element),
                     rank < 0 ? "any rank" : fmt::format("rank {}", rank), index),
         type.str());
  return type;
}

const Type& InferContext::weight(std::size_t index, int rank) const {
  const Type& type = operand(index);
  expect(type.is_weight() && type.shape.size() == static_cast<std::size_t>(rank),
         fmt::format("a Weight of rank {} as operand {}", rank, index), type.str());
  return type;
}

const Type& InferContext::state(std::size_t index, int rank) const {
  const Type& type = operand(index);
  expect(type.is_state() && type.shape.size() == static_cast<std::size_t>(rank),
         fmt::format("a State of rank {} as operand {}", rank, index), type.str());
  return type;
}

std::size_t InferContext::axis(std::string_view name, std::size_t rank) const {
  auto value = attribute<std::int64_t>(name);
  const auto signed_rank = static_cast<std::int64_t>(rank);
  expect(value >= -signed_rank && value < signed_rank, fmt::format("an axis of rank {}", rank),
         fmt::format("{} = {}", name, value));
  if (value < 0) value += signed_rank;
  return static_cast<std::size_t>(value);
}

std::vector<Type> check_op(const OpDef& op, std::span<const Type> operands, Attributes& attributes) {
  const auto count = static_cast<int>(operands.size());
  const InferContext context(op.name, operands, attributes);
  context.expect(count >= op.minimum_operands && count <= op.maximum_operands,
                 op.minimum_operands == op.maximum_operands
                     ? fmt::format("{} operands", op.minimum_operands)
                     : fmt::format("{} to {} operands", op.minimum_operands, op.maximum_operands),
                 std::to_string(count));
  for (const auto& [name, value] : attributes) {
    const bool known = std::any_of(op.attributes.begin(), op.attributes.end(),
                                   [&](const AttributeSpec& spec) { return spec.name == name; });
    context.expect(known, "no such attribute", name);
  }
  for (const AttributeSpec& spec : op.attributes) {
    const auto place = attributes.find(spec.name);
    if (place == attributes.end()) {
      context.expect(!spec.required, fmt::format("attribute {}", spec.name), "none");
      attributes.emplace(spec.name, spec.example);
    } else {
      context.expect(place->second.index() == spec.example.index(),
                     fmt::format("{} as a {}", spec.name, attribute_kind(spec.example.index())),
                     fmt::format("a {}", attribute_kind(place->second.index())));
    }
  }
  return op.infer(context);
}

Shape broadcast_shapes(const InferContext& context, const Shape& a, const Shape& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Shape shape(rank);
  for (std::size_t i = 0; i < rank; ++i) {  // i counts from the last dimension
    const Dim left = i < a.size() ? a[a.size() - 1 - i] : Dim(1);
    const Dim right = i < b.size() ? b[b.size() - 1 - i] : Dim(1);
    const bool fits = left == right || left == Dim(1) || right == Dim(1);
    context.expect(fits, "shapes that broadcast", shape_str(a) + " and " + shape_str(b));
    shape[rank - 1 - i] = left == Dim(1) ? right : left;
  }
  return shape;
}

Shape broadcast_numbers(const InferContext& context) {
  const Type& a = context.numeric(0);
  const Type& b = context.numeric(1);
  context.expect(a.element == b.element && a.element != ElementType::boolean, "two tensors of one number type",
                 a.str() + " and " + b.str());
  return broadcast_shapes(context, a.shape, b.shape);
}

std::string shape_str(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i > 0 ? ", " : "") + shape[i].str();
  return text + "]";
}

}  // namespace headrace::ir
