// Llama 1 to 3 (with 3.1's rope scaling), Mistral, SmolLM: pre-norm layers of grouped attention and SwiGLU.
// Touvron et al. 2023 (arXiv 2302.13971); the names of keys and tensors are GGUF's.
#include <cmath>

#include <fmt/format.h>

#include "base/error.hpp"
#include "models/model_builder.hpp"

namespace headrace::models {

namespace {

using ir::ValueId;

struct Config {
  ModelShape shape;
  double epsilon = 1e-5;
  double rope_theta = 10000;
  double rope_scaling = 1;
};

Config read_config(const Checkpoint& file) {
  const ConfigReader reader(file);
  Config config;
  ModelShape& shape = config.shape;
  shape.layers = reader.size("block_count");
  shape.width = reader.size("embedding_length");
  shape.feed_forward_width = reader.size("feed_forward_length");
  shape.heads = reader.size("attention.head_count");
  shape.kv_heads = reader.size("attention.head_count_kv", shape.heads);
  shape.context_length = reader.size("context_length");
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
  const std::int64_t rotated = reader.size("rope.dimension_count", shape.head_width);
  if (rotated != shape.head_width || rotated % 2 != 0) {
    reader.refuse("rope.dimension_count", fmt::format("the whole, even head width {}", shape.head_width),
                  std::to_string(rotated));
  }
  config.epsilon = reader.positive("attention.layer_norm_rms_epsilon");
  config.rope_theta = reader.positive("rope.freq_base", 10000.0);
  const std::string scaling = file.string("rope.scaling.type").value_or("none");
  if (scaling == "linear") {
    config.rope_scaling = reader.positive("rope.scaling.factor");
  } else if (scaling != "none") {
    reader.refuse("rope.scaling.type", "none or linear", scaling);
  }
  const CheckpointTensor& embedding = find_weight(file, "token_embd.weight");
  if (embedding.shape.size() != 2) {
    fail<InputError>("{}: tensor token_embd.weight: expected 2 dimensions, found {}", file.path(),
                     embedding.shape.size());
  }
  shape.vocabulary = embedding.shape[0];
  return config;
}

LayerWeights layer_weights(const Checkpoint& file, const ModelShape& s) {
  const std::int64_t q = s.heads * s.head_width;
  const std::int64_t kv = s.kv_heads * s.head_width;
  LayerWeights weights;
  // Biases of the projections are rare; where layer 0 has one, all have.
  const auto add = [&](const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    weights.add(name + ".weight", {outputs, inputs});
    if (file.find_tensor("blk.0." + name + ".bias") != nullptr) weights.add(name + ".bias", {outputs});
  };
  weights.add("attn_norm.weight", {s.width});
  add("attn_q", q, s.width);
  add("attn_k", kv, s.width);
  add("attn_v", kv, s.width);
  add("attn_output", s.width, q);
  weights.add("ffn_norm.weight", {s.width});
  add("ffn_gate", s.feed_forward_width, s.width);
  add("ffn_up", s.feed_forward_width, s.width);
  add("ffn_down", s.width, s.feed_forward_width);
  return weights;
}

/// @layer(x f32[T, D], angles f32[T, E], sequence, position i32[T], weights …, keys, values) -> x, keys, values
ir::Function build_layer(const Config& config, const LayerWeights& weights) {
  const ModelShape& s = config.shape;
  const ir::Dim rows = ir::Dim::symbol("T");
  ir::Builder b("layer", nullptr);
  ValueId x = b.parameter("x", ir::Type::tensor(ir::ElementType::f32, {rows, s.width}));
  const ValueId angles = b.parameter("angles", ir::Type::tensor(ir::ElementType::f32, {rows, s.head_width}));
  const ValueId sequence = b.parameter("sequence", ir::Type::tensor(ir::ElementType::i32, {rows}));
  const ValueId position = b.parameter("position", ir::Type::tensor(ir::ElementType::i32, {rows}));
  std::map<std::string, ValueId> weight;
  for (const auto& [name, shape] : weights.tensors()) {
    weight[name] = b.parameter(name, ir::Type::weight("*", ir::Shape(shape.begin(), shape.end())));
  }
  ValueId keys = b.parameter("keys", ir::Type::state(ir::ElementType::f16, {s.kv_heads, s.head_width}));
  ValueId values = b.parameter("values", ir::Type::state(ir::ElementType::f16, {s.kv_heads, s.head_width}));

  const auto linear = [&](ValueId input, const std::string& name) {
    const ValueId y = b.op("linear", {input, weight.at(name + ".weight")});
    const auto bias = weight.find(name + ".bias");
    return bias == weight.end() ? y : b.op("add", {y, bias->second});
  };
  const auto norm = [&](ValueId input, const std::string& name) {
    return b.op("rms_norm", {input, weight.at(name)}, {{"epsilon", config.epsilon}});
  };
  const auto heads = [&](ValueId input, std::int64_t count) {
    return b.op("reshape", {input}, {{"shape", fmt::format("T, {}, {}", count, s.head_width)}});
  };
  const auto rotated = [&](ValueId input) { return b.op("rope", {input, angles}, {{"pairing", "adjacent"}}); };

  const ValueId h = norm(x, "attn_norm.weight");
  const ValueId q = rotated(heads(linear(h, "attn_q"), s.heads));
  const ValueId k = rotated(heads(linear(h, "attn_k"), s.kv_heads));
  const ValueId v = heads(linear(h, "attn_v"), s.kv_heads);
  keys = b.op("append", {keys, k, sequence, position});
  values = b.op("append", {values, v, sequence, position});
  const double scale = 1.0 / std::sqrt(static_cast<double>(s.head_width));
  const ValueId mixed = b.op("attention", {q, keys, values, sequence, position}, {{"scale", scale}});
  const ValueId flat = b.op("reshape", {mixed}, {{"shape", fmt::format("T, {}", s.heads * s.head_width)}});
  x = b.op("add", {x, linear(flat, "attn_output")});

  const ValueId g = norm(x, "ffn_norm.weight");
  const ValueId gated = b.op("silu_multiply", {linear(g, "ffn_gate"), linear(g, "ffn_up")});
  x = b.op("add", {x, linear(gated, "ffn_down")});
  return b.finish({x, keys, values});
}

Model build(const Checkpoint& file, const StepLimits& limits) {
  const Config config = read_config(file);
  const ModelShape& s = config.shape;
  Model model;
  model.family = "llama";
  model.shape = s;
  model.program.name = "llama";
  StepLimits step = limits;
  if (step.context == 0) step.context = s.context_length;
  declare_step_symbols(model.program, step);

  const LayerWeights weights = layer_weights(file, s);
  model.program.functions.push_back(build_layer(config, weights));

  const ir::Dim rows = ir::Dim::symbol("T");
  ir::Builder b("main", &model.program);
  const ValueId tokens = b.parameter("tokens", ir::Type::tensor(ir::ElementType::i32, {rows}));
  const ValueId sequence = b.parameter("sequence", ir::Type::tensor(ir::ElementType::i32, {rows}));
  const ValueId position = b.parameter("position", ir::Type::tensor(ir::ElementType::i32, {rows}));
  const ValueId wanted = b.parameter("rows", ir::Type::tensor(ir::ElementType::i32, {ir::Dim::symbol("S")}));
  const ValueId embedding = declare_weight(b, file, "token_embd.weight", {s.vocabulary, s.width});
  // Llama 3.1 scales each frequency by a factor of its own, which GGUF carries as a tensor.
  const bool has_factors = file.find_tensor("rope_freqs.weight") != nullptr;
  const ValueId factors = has_factors ? declare_weight(b, file, "rope_freqs.weight", {s.head_width / 2}) : -1;
  std::vector<std::vector<ValueId>> layers;
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    layers.emplace_back();
    for (const auto& [name, shape] : weights.tensors()) {
      layers.back().push_back(declare_weight(b, file, fmt::format("blk.{}.{}", layer, name), shape));
    }
  }
  const ValueId output_norm = declare_weight(b, file, "output_norm.weight", {s.width});
  const bool tied = file.find_tensor("output.weight") == nullptr;
  const ValueId output = tied ? embedding : declare_weight(b, file, "output.weight", {s.vocabulary, s.width});
  for (std::int64_t layer = 0; layer < s.layers; ++layer) {
    const ir::Type state = ir::Type::state(ir::ElementType::f16, {s.kv_heads, s.head_width});
    layers[static_cast<std::size_t>(layer)].push_back(b.parameter(fmt::format("keys.{}", layer), state));
    layers[static_cast<std::size_t>(layer)].push_back(b.parameter(fmt::format("values.{}", layer), state));
  }

  ValueId frequencies = rope_frequencies(b, config.rope_theta, config.rope_scaling, s.head_width);
  if (has_factors) frequencies = b.op("divide", {frequencies, factors});
  const ValueId angles = b.op("rope_table", {position, frequencies});
  ValueId x = b.op("embedding", {embedding, tokens});
  std::vector<ValueId> states;
  for (const std::vector<ValueId>& layer : layers) {
    std::vector<ValueId> operands = {x, angles, sequence, position};
    operands.insert(operands.end(), layer.begin(), layer.end());
    const std::vector<ValueId> results = b.call("layer", operands);
    x = results[0];
    states.insert(states.end(), results.begin() + 1, results.end());
  }
  const ValueId last = b.op("gather", {x, wanted});
  const ValueId normal = b.op("rms_norm", {last, output_norm}, {{"epsilon", config.epsilon}});
  std::vector<ValueId> results = {b.op("linear", {normal, output}, {}, "logits")};
  results.insert(results.end(), states.begin(), states.end());
  model.program.functions.push_back(b.finish(std::move(results)));
  return model;
}

}  // namespace

Family family_llama() { return {"llama", build}; }

}  // namespace headrace::models
