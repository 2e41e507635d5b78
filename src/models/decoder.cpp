#include "models/decoder.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/error.hpp"

namespace headrace::models {

using ir::ValueId;

namespace {

void read_heads(const Checkpoint& file, const ConfigReader& reader, ModelShape& shape) {
  shape.heads = reader.size("attention.head_count");
  shape.kv_heads = reader.size("attention.head_count_kv", shape.heads);
  if (shape.heads % shape.kv_heads != 0) {
    reader.refuse("attention.head_count_kv", fmt::format("a divisor of {} heads", shape.heads),
                  std::to_string(shape.kv_heads));
  }
  if (!file.integer("attention.key_length") && shape.width % shape.heads != 0) {
    reader.refuse("attention.head_count", fmt::format("a divisor of the width {}", shape.width),
                  std::to_string(shape.heads));
  }
  shape.head_width = reader.size("attention.key_length", shape.width / shape.heads);
  if (reader.size("attention.value_length", shape.head_width) != shape.head_width) {
    reader.refuse("attention.value_length", std::to_string(shape.head_width), "another width");
  }
}

void read_experts(const Checkpoint& file, const ConfigReader& reader, ModelShape& shape) {
  if (file.integer("expert_count").value_or(0) == 0) return;
  shape.experts = reader.size("expert_count");
  shape.experts_used = reader.size("expert_used_count");
  if (shape.experts_used > shape.experts) {
    reader.refuse("expert_used_count", fmt::format("at most {} experts", shape.experts),
                  std::to_string(shape.experts_used));
  }
  shape.feed_forward_width = reader.size("expert_feed_forward_length", shape.feed_forward_width);
}

LayerWeights weights_of(const LayerKind& kind, const Checkpoint& file, const ModelShape& shape) {
  LayerWeights weights;
  kind.attention.declare(weights, file, shape);
  weights.add(kind.feed_forward_norm, {shape.width});
  std::visit([&](const auto& block) { block.declare(weights, file, shape); }, kind.feed_forward);
  return weights;
}

ir::Function build_layer(const std::string& name, const LayerKind& kind, const LayerWeights& weights,
                         const Decoder& decoder) {
  LayerBuilder layer(name, decoder.shape, decoder.epsilon, weights);
  ir::Builder& b = layer.builder();
  const ValueId x = b.op("add", {layer.input(), kind.attention.build(layer, layer.input())});
  const ValueId normal = layer.norm(x, kind.feed_forward_norm);
  const ValueId y = std::visit([&](const auto& block) { return block.build(layer, normal); }, kind.feed_forward);
  return layer.finish(b.op("add", {x, y}));
}

/// Declares the entry's Weights, and remembers which tensors of the file they are.
class EntryWeights {
 public:
  EntryWeights(ir::Builder& builder, const Checkpoint& file) : builder_(builder), file_(file) {}

  ValueId add(const LayerWeights::Tensor& tensor, const std::string& name) {
    used_.insert(name);
    return declare_weight(builder_, file_, name, tensor);
  }
  ValueId add(const std::string& name, std::vector<std::int64_t> shape) { return add({name, shape, shape}, name); }
  [[nodiscard]] bool has(std::string_view name) const { return file_.find_tensor(name) != nullptr; }

  void refuse_others(const std::string& family) const {
    for (const CheckpointTensor& tensor : file_.tensors()) {
      if (used_.contains(tensor.name)) continue;
      fail<InputError>("{}: tensor {}: expected none of this name in a model of the family {}", file_.path(),
                       tensor.name, family);
    }
  }

 private:
  ir::Builder& builder_;
  const Checkpoint& file_;
  std::set<std::string, std::less<>> used_;
};

}  // namespace

Decoder read_decoder(const Checkpoint& file, std::string family, const Habits& habits) {
  const ConfigReader reader(file);
  Decoder decoder;
  decoder.family = std::move(family);
  ModelShape& shape = decoder.shape;
  shape.layers = reader.size("block_count");
  shape.width = reader.size("embedding_length");
  shape.context_length = reader.size("context_length");
  read_heads(file, reader, shape);
  // Files of experts alone may lack the dense width.
  const bool only_experts = !file.integer("feed_forward_length") && file.integer("expert_feed_forward_length");
  shape.feed_forward_width = reader.size(only_experts ? "expert_feed_forward_length" : "feed_forward_length");
  read_experts(file, reader, shape);
  decoder.epsilon = reader.positive("attention.layer_norm_rms_epsilon");
  decoder.rope = read_rope(file, shape.head_width, habits.truncate);
  if (file.integer("attention.sliding_window").value_or(0) != 0) {
    decoder.window = reader.size("attention.sliding_window");
    decoder.window_pattern = file.integer("attention.sliding_window_pattern").value_or(habits.window_pattern);
    if (decoder.window_pattern < 0 || decoder.window_pattern > shape.layers) {
      reader.refuse("attention.sliding_window_pattern", fmt::format("a number of {} layers", shape.layers),
                    std::to_string(decoder.window_pattern));
    }
  }
  const CheckpointTensor& embedding = find_weight(file, "token_embd.weight");
  if (embedding.shape.size() != 2) {
    fail<InputError>("{}: tensor token_embd.weight: expected 2 dimensions, found {}", file.path(),
                     embedding.shape.size());
  }
  shape.vocabulary = embedding.shape[0];
  return decoder;
}

void require_experts(const Checkpoint& file, const Decoder& decoder) {
  if (decoder.shape.experts == 0) ConfigReader(file).refuse("expert_count", "a number of experts", "none");
}

Model build_decoder(const Checkpoint& file, const StepLimits& limits, const Decoder& decoder) {
  const ModelShape& s = decoder.shape;
  Model model;
  model.family = decoder.family;
  model.shape = s;
  model.program.name = decoder.family;
  StepLimits step = limits;
  if (step.context == 0) step.context = s.context_length;
  declare_step_symbols(model.program, step);

  const LayerWeights weights = weights_of(decoder.layer, file, s);
  const bool has_full = decoder.window == 0 || decoder.window_pattern > 0;
  if (has_full) model.program.functions.push_back(build_layer("layer", decoder.layer, weights, decoder));
  if (decoder.window > 0) {
    LayerKind windowed = decoder.layer;
    windowed.attention.window = decoder.window;
    model.program.functions.push_back(build_layer("window_layer", windowed, weights, decoder));
  }
  const auto callee_of = [&](std::size_t layer) {
    const auto pattern = static_cast<std::size_t>(decoder.window_pattern);
    const bool full = has_full && (decoder.window == 0 || layer % pattern + 1 == pattern);
    return full ? "layer" : "window_layer";
  };

  const ir::Type integers = ir::Type::tensor(ir::ElementType::i32, {ir::Dim::symbol("T")});
  ir::Builder b("main", &model.program);
  const ValueId tokens = b.parameter("tokens", integers);
  const ValueId sequence = b.parameter("sequence", integers);
  const ValueId position = b.parameter("position", integers);
  const ValueId wanted = b.parameter("rows", ir::Type::tensor(ir::ElementType::i32, {ir::Dim::symbol("S")}));
  EntryWeights entry(b, file);
  const ValueId embedding = entry.add("token_embd.weight", {s.vocabulary, s.width});
  // Llama 3.1 scales each frequency by a factor of its own, which GGUF carries as a tensor.
  const bool has_factors = entry.has("rope_freqs.weight");
  const ValueId factors = has_factors ? entry.add("rope_freqs.weight", {s.head_width / 2}) : -1;
  std::vector<std::vector<ValueId>> layers(static_cast<std::size_t>(s.layers));
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    for (const LayerWeights::Tensor& tensor : weights.tensors()) {
      layers[static_cast<std::size_t>(layer)].push_back(
          entry.add(tensor, fmt::format("blk.{}.{}", layer, tensor.name)));
    }
  }
  const ValueId output_norm = entry.add("output_norm.weight", {s.width});
  const bool tied = !entry.has("output.weight");
  const ValueId output = tied ? embedding : entry.add("output.weight", {s.vocabulary, s.width});
  entry.refuse_others(decoder.family);
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    const ir::Type state = ir::Type::state(ir::ElementType::f16, {s.kv_heads, s.head_width});
    layers[static_cast<std::size_t>(layer)].push_back(b.parameter(fmt::format("keys.{}", layer), state));
    layers[static_cast<std::size_t>(layer)].push_back(b.parameter(fmt::format("values.{}", layer), state));
  }

  ValueId frequencies = rope_frequencies(b, decoder.rope);
  if (has_factors) frequencies = b.op("divide", {frequencies, factors});
  const ValueId angles = b.op("rope_table", {position, frequencies}, {{"magnitude", decoder.rope.magnitude}});
  ValueId x = b.op("embedding", {embedding, tokens});
  std::vector<ValueId> states;
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    std::vector<ValueId> operands = {x, angles, sequence, position};
    operands.insert(operands.end(), layers[layer].begin(), layers[layer].end());
    const std::vector<ValueId> results = b.call(callee_of(layer), operands);
    x = results[0];
    states.insert(states.end(), results.begin() + 1, results.end());
  }
  const ValueId last = b.op("gather", {x, wanted});
  const ValueId normal = b.op("rms_norm", {last, output_norm}, {{"epsilon", decoder.epsilon}});
  std::vector<ValueId> results = {b.op("linear", {normal, output}, {}, "logits")};
  results.insert(results.end(), states.begin(), states.end());
  model.program.functions.push_back(b.finish(std::move(results)));
  return model;
}

}  // namespace headrace::models
