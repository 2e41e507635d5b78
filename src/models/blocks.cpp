#include "models/blocks.hpp"

#include <cmath>

#include <fmt/format.h>

namespace headrace::models {

using ir::ValueId;

namespace {

/// NAME.weight [N, K], and NAME.bias where the file has one: biases are rare, and where layer 0 has one, all have.
void add_linear(LayerWeights& weights, const Checkpoint& file, const std::string& name, std::int64_t outputs,
                std::int64_t inputs) {
  weights.add(name + ".weight", {outputs, inputs});
  if (file.find_tensor("blk.0." + name + ".bias") != nullptr) weights.add(name + ".bias", {outputs});
}

/// The same of all experts. A bias [X, N] is read as [X, N, 1], so that it lies expert after expert.
void add_experts(LayerWeights& weights, const Checkpoint& file, const std::string& name, std::int64_t experts,
                 std::int64_t outputs, std::int64_t inputs) {
  weights.add(name + ".weight", {experts, outputs, inputs});
  if (file.find_tensor("blk.0." + name + ".bias") != nullptr) weights.add_column(name + ".bias", {experts, outputs});
}

ValueId reshape(ir::Builder& b, ValueId x, const std::string& shape) {
  return b.op("reshape", {x}, {{"shape", shape}});
}

}  // namespace

LayerBuilder::LayerBuilder(const std::string& name, const ModelShape& shape, double epsilon,
                           const LayerWeights& weights)
    : builder_(name, nullptr), shape_(shape), epsilon_(epsilon) {
  const ir::Dim rows = ir::Dim::symbol("T");
  const ir::Type integers = ir::Type::tensor(ir::ElementType::i32, {rows});
  x_ = builder_.parameter("x", ir::Type::tensor(ir::ElementType::f32, {rows, shape.width}));
  angles = builder_.parameter("angles", ir::Type::tensor(ir::ElementType::f32, {rows, shape.head_width}));
  sequence = builder_.parameter("sequence", integers);
  position = builder_.parameter("position", integers);
  for (const LayerWeights::Tensor& tensor : weights.tensors()) {
    const ir::Shape dims(tensor.shape.begin(), tensor.shape.end());
    weights_[tensor.name] = builder_.parameter(tensor.name, ir::Type::weight("*", dims));
  }
  const ir::Type state = ir::Type::state(ir::ElementType::f16, {shape.kv_heads, shape.head_width});
  keys = builder_.parameter("keys", state);
  values = builder_.parameter("values", state);
}

ValueId LayerBuilder::linear(ValueId x, const std::string& name) {
  const ValueId y = builder_.op("linear", {x, weight(name + ".weight")});
  return has(name + ".bias") ? builder_.op("add", {y, weight(name + ".bias")}) : y;
}

ValueId LayerBuilder::norm(ValueId x, const std::string& name) {
  return builder_.op("rms_norm", {x, weight(name)}, {{"epsilon", epsilon_}});
}

void AttentionBlock::declare(LayerWeights& weights, const Checkpoint& file, const ModelShape& s) const {
  const std::int64_t q = s.heads * s.head_width;
  const std::int64_t kv = s.kv_heads * s.head_width;
  weights.add("attn_norm.weight", {s.width});
  add_linear(weights, file, "attn_q", q, s.width);
  add_linear(weights, file, "attn_k", kv, s.width);
  add_linear(weights, file, "attn_v", kv, s.width);
  add_linear(weights, file, "attn_output", s.width, q);
  if (norm != Norm::none) {
    weights.add("attn_q_norm.weight", {norm == Norm::heads ? s.head_width : q});
    weights.add("attn_k_norm.weight", {norm == Norm::heads ? s.head_width : kv});
  }
  if (sinks) weights.add("attn_sinks.weight", {s.heads});
}

ValueId AttentionBlock::build(LayerBuilder& layer, ValueId x) const {
  ir::Builder& b = layer.builder();
  const ModelShape& s = layer.shape();
  const auto rotated = [&](ValueId rows, std::int64_t heads, const std::string& norm_name) {
    if (norm == Norm::width) rows = layer.norm(rows, norm_name);
    if (norm == Norm::heads) {
      rows = layer.norm(reshape(b, rows, fmt::format("{}*T, {}", heads, s.head_width)), norm_name);
    }
    rows = reshape(b, rows, fmt::format("T, {}, {}", heads, s.head_width));
    return b.op("rope", {rows, layer.angles}, {{"pairing", pairing}});
  };
  const ValueId h = layer.norm(x, "attn_norm.weight");
  const ValueId q = rotated(layer.linear(h, "attn_q"), s.heads, "attn_q_norm.weight");
  const ValueId k = rotated(layer.linear(h, "attn_k"), s.kv_heads, "attn_k_norm.weight");
  const ValueId v = reshape(b, layer.linear(h, "attn_v"), fmt::format("T, {}, {}", s.kv_heads, s.head_width));
  layer.keys = b.op("append", {layer.keys, k, layer.sequence, layer.position});
  layer.values = b.op("append", {layer.values, v, layer.sequence, layer.position});
  const double scale = 1.0 / std::sqrt(static_cast<double>(s.head_width));
  std::vector<ValueId> operands = {q, layer.keys, layer.values, layer.sequence, layer.position};
  if (sinks) operands.push_back(layer.weight("attn_sinks.weight"));
  const ValueId mixed = b.op("attention", operands, {{"scale", scale}, {"window", window}});
  return layer.linear(reshape(b, mixed, fmt::format("T, {}", s.heads * s.head_width)), "attn_output");
}

void SwigluBlock::declare(LayerWeights& weights, const Checkpoint& file, const ModelShape& s) const {
  add_linear(weights, file, "ffn_gate", s.feed_forward_width, s.width);
  add_linear(weights, file, "ffn_up", s.feed_forward_width, s.width);
  add_linear(weights, file, "ffn_down", s.width, s.feed_forward_width);
}

ValueId SwigluBlock::build(LayerBuilder& layer, ValueId x) const {
  const ValueId gate = layer.linear(x, "ffn_gate");
  return layer.linear(layer.builder().op("silu_multiply", {gate, layer.linear(x, "ffn_up")}), "ffn_down");
}

void ExpertBlock::declare(LayerWeights& list, const Checkpoint& file, const ModelShape& s) const {
  add_linear(list, file, "ffn_gate_inp", s.experts, s.width);
  add_experts(list, file, "ffn_gate_exps", s.experts, s.feed_forward_width, s.width);
  add_experts(list, file, "ffn_up_exps", s.experts, s.feed_forward_width, s.width);
  add_experts(list, file, "ffn_down_exps", s.experts, s.width, s.feed_forward_width);
}

ValueId ExpertBlock::build(LayerBuilder& layer, ValueId x) const {
  ir::Builder& b = layer.builder();
  ValueId scores = layer.linear(x, "ffn_gate_inp");
  if (weights != Weights::softmax_of_chosen) scores = b.op("softmax", {scores});
  const ValueId ids = b.op("top_k", {scores}, {{"k", layer.shape().experts_used}});
  ValueId chosen = b.op("take_along", {scores, ids});
  if (weights == Weights::softmax_of_chosen) chosen = b.op("softmax", {chosen});
  if (weights == Weights::normalized_softmax) chosen = b.op("divide", {chosen, b.op("reduce_sum", {chosen})});
  const auto linear = [&](ValueId input, const std::string& name) {
    std::vector<ValueId> operands = {input, layer.weight(name + ".weight"), ids};
    if (layer.has(name + ".bias")) operands.push_back(layer.weight(name + ".bias"));
    return b.op("expert_linear", operands);
  };
  const ValueId gate = linear(x, "ffn_gate_exps");
  const ValueId up = linear(x, "ffn_up_exps");
  const ValueId gated = clamped ? b.op("clamped_swiglu", {gate, up}, {{"alpha", 1.702}, {"limit", 7.0}})
                                : b.op("silu_multiply", {gate, up});
  return b.op("weighted_sum", {linear(gated, "ffn_down_exps"), chosen});
}

}  // namespace headrace::models
