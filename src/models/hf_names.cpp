#include "models/hf_names.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace headrace::models {

namespace {

using Pair = std::pair<std::string_view, std::string_view>;

/// model_type -> family, where they differ.
constexpr std::array architectures = {
    Pair{"mistral", "llama"},
    Pair{"qwen3_moe", "qwen3moe"},
    Pair{"gpt_oss", "gpt-oss"},
};

/// GGUF's key -> path in config.json. "rope.scaling.*" are in hf_config_paths.
constexpr std::array config_paths = {
    Pair{"block_count", "num_hidden_layers"},
    Pair{"embedding_length", "hidden_size"},
    Pair{"feed_forward_length", "intermediate_size"},
    Pair{"context_length", "max_position_embeddings"},
    Pair{"attention.head_count", "num_attention_heads"},
    Pair{"attention.head_count_kv", "num_key_value_heads"},
    Pair{"attention.key_length", "head_dim"},
    Pair{"attention.value_length", "head_dim"},
    Pair{"attention.layer_norm_rms_epsilon", "rms_norm_eps"},
    Pair{"attention.sliding_window", "sliding_window"},
    Pair{"rope.freq_base", "rope_parameters.rope_theta"},
    Pair{"rope.freq_base", "rope_theta"},
    Pair{"expert_count", "num_local_experts"},
    Pair{"expert_count", "num_experts"},
    Pair{"expert_used_count", "num_experts_per_tok"},
    Pair{"expert_feed_forward_length", "moe_intermediate_size"},
    Pair{"expert_weights_norm", "norm_topk_prob"},
};

/// What follows "rope.scaling." -> the field of rope_parameters or of rope_scaling, which is its name in older files.
constexpr std::array rope_scaling_fields = {
    Pair{"type", "rope_type"},
    Pair{"type", "type"},
    Pair{"factor", "factor"},
    Pair{"original_context_length", "original_max_position_embeddings"},
    Pair{"low_freq_factor", "low_freq_factor"},
    Pair{"high_freq_factor", "high_freq_factor"},
    Pair{"yarn_beta_fast", "beta_fast"},
    Pair{"yarn_beta_slow", "beta_slow"},
    Pair{"yarn_attn_factor", "attention_factor"},
    Pair{"truncate", "truncate"},
};

constexpr std::array model_tensors = {
    Pair{"embed_tokens.weight", "token_embd.weight"},
    Pair{"norm.weight", "output_norm.weight"},
    Pair{"lm_head.weight", "output.weight"},
};

constexpr std::array layer_tensors = {
    Pair{"input_layernorm.weight", "attn_norm.weight"},
    Pair{"self_attn.q_proj.weight", "attn_q.weight"},
    Pair{"self_attn.q_proj.bias", "attn_q.bias"},
    Pair{"self_attn.k_proj.weight", "attn_k.weight"},
    Pair{"self_attn.k_proj.bias", "attn_k.bias"},
    Pair{"self_attn.v_proj.weight", "attn_v.weight"},
    Pair{"self_attn.v_proj.bias", "attn_v.bias"},
    Pair{"self_attn.o_proj.weight", "attn_output.weight"},
    Pair{"self_attn.o_proj.bias", "attn_output.bias"},
    Pair{"self_attn.q_norm.weight", "attn_q_norm.weight"},
    Pair{"self_attn.k_norm.weight", "attn_k_norm.weight"},
    Pair{"self_attn.sinks", "attn_sinks.weight"},
    Pair{"post_attention_layernorm.weight", "ffn_norm.weight"},
    Pair{"mlp.gate_proj.weight", "ffn_gate.weight"},
    Pair{"mlp.gate_proj.bias", "ffn_gate.bias"},
    Pair{"mlp.up_proj.weight", "ffn_up.weight"},
    Pair{"mlp.up_proj.bias", "ffn_up.bias"},
    Pair{"mlp.down_proj.weight", "ffn_down.weight"},
    Pair{"mlp.down_proj.bias", "ffn_down.bias"},
    Pair{"mlp.gate.weight", "ffn_gate_inp.weight"},
    Pair{"block_sparse_moe.gate.weight", "ffn_gate_inp.weight"},
    Pair{"mlp.router.weight", "ffn_gate_inp.weight"},
    Pair{"mlp.router.bias", "ffn_gate_inp.bias"},
};

/// Where this family's names differ.
constexpr std::array gpt_oss_layer_tensors = {
    Pair{"post_attention_layernorm.weight", "post_attention_norm.weight"},
};

/// What follows the number of an expert.
constexpr std::array expert_tensors = {
    Pair{"gate_proj.weight", "ffn_gate_exps.weight"}, Pair{"up_proj.weight", "ffn_up_exps.weight"},
    Pair{"down_proj.weight", "ffn_down_exps.weight"}, Pair{"w1.weight", "ffn_gate_exps.weight"},
    Pair{"w3.weight", "ffn_up_exps.weight"},          Pair{"w2.weight", "ffn_down_exps.weight"},
};

template <std::size_t N>
std::optional<std::string_view> look_up(const std::array<Pair, N>& table, std::string_view name) {
  const auto found = std::ranges::find(table, name, &Pair::first);
  return found == table.end() ? std::nullopt : std::optional(found->second);
}

/// The number that `text` starts with, up to its dot; both are removed. Only one spelling of a number is one.
std::optional<std::int64_t> take_number(std::string_view& text) {
  const std::size_t dot = text.find('.');
  std::int64_t number = 0;
  if (dot == std::string_view::npos || dot == 0 || dot > 9 || (dot > 1 && text[0] == '0')) return std::nullopt;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + dot, number);
  if (error != std::errc() || rest != text.data() + dot || number < 0) return std::nullopt;
  text.remove_prefix(dot + 1);
  return number;
}

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::string hf_architecture(std::string_view model_type) {
  return std::string(look_up(architectures, model_type).value_or(model_type));
}

std::vector<std::string> hf_config_paths(std::string_view key) {
  std::vector<std::string> paths;
  for (const auto& [gguf, path] : config_paths) {
    if (gguf == key) paths.emplace_back(path);
  }
  if (std::string_view field = key; take_prefix(field, "rope.scaling.")) {
    for (const std::string_view object : {"rope_parameters", "rope_scaling"}) {
      for (const auto& [gguf, name] : rope_scaling_fields) {
        if (gguf == field) paths.push_back(fmt::format("{}.{}", object, name));
      }
    }
  }
  return paths;
}

std::optional<HfTensorName> gguf_tensor_name(std::string_view hf_name, std::string_view architecture) {
  std::string_view rest = hf_name;
  take_prefix(rest, "model.");  // missing where the model was saved without its head
  if (const auto name = look_up(model_tensors, rest)) return HfTensorName{std::string(*name), {}};
  if (!take_prefix(rest, "layers.")) return std::nullopt;
  const auto layer = take_number(rest);
  if (!layer) return std::nullopt;
  const auto within = [&](std::string_view name) { return fmt::format("blk.{}.{}", *layer, name); };
  if (architecture == "gpt-oss") {
    if (const auto name = look_up(gpt_oss_layer_tensors, rest)) return HfTensorName{within(*name), {}};
  }
  if (const auto name = look_up(layer_tensors, rest)) return HfTensorName{within(*name), {}};
  if (!take_prefix(rest, "mlp.experts.") && !take_prefix(rest, "block_sparse_moe.experts.")) return std::nullopt;
  const auto expert = take_number(rest);
  const auto name = look_up(expert_tensors, rest);
  if (!expert || !name) return std::nullopt;
  return HfTensorName{within(*name), expert};
}

}  // namespace headrace::models
