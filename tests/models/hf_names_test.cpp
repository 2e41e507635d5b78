// The tables of names, and names that are none.
#include "models/hf_names.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::models {
namespace {

using testing::ElementsAre;

std::string translated(std::string_view name, std::string_view architecture = "llama") {
  const auto found = gguf_tensor_name(name, architecture);
  if (!found) return "none";
  return found->name + (found->expert ? " #" + std::to_string(*found->expert) : "");
}

TEST(HfNames, Tensors) {
  EXPECT_EQ(translated("model.embed_tokens.weight"), "token_embd.weight");
  EXPECT_EQ(translated("embed_tokens.weight"), "token_embd.weight");
  EXPECT_EQ(translated("lm_head.weight"), "output.weight");
  EXPECT_EQ(translated("model.layers.0.self_attn.q_proj.bias"), "blk.0.attn_q.bias");
  EXPECT_EQ(translated("model.layers.12.mlp.down_proj.weight"), "blk.12.ffn_down.weight");
  EXPECT_EQ(translated("model.layers.3.mlp.experts.7.up_proj.weight"), "blk.3.ffn_up_exps.weight #7");
  EXPECT_EQ(translated("model.layers.3.block_sparse_moe.experts.10.w2.weight"), "blk.3.ffn_down_exps.weight #10");
  EXPECT_EQ(translated("model.layers.1.post_attention_layernorm.weight"), "blk.1.ffn_norm.weight");
  EXPECT_EQ(translated("model.layers.1.post_attention_layernorm.weight", "gpt-oss"),
            "blk.1.post_attention_norm.weight");
}

TEST(HfNames, NamesThatAreNone) {
  for (const std::string name : {"", "model", "model.", "model.layers", "model.layers.", "model.layers.1",
                                 "model.layers.1.", "model.layers..mlp", "model.layers.x.mlp.up_proj.weight",
                                 "model.layers.01.mlp.up_proj.weight", "model.layers.-1.mlp.up_proj.weight",
                                 "model.layers.1000000000.mlp.up_proj.weight", "model.layers.1.mlp.up_proj",
                                 "model.layers.1.mlp.experts.up_proj", "model.layers.1.mlp.experts.00.up_proj.weight",
                                 "model.layers.1.mlp.experts.0.w9.weight", "blk.0.attn_q.weight"}) {
    EXPECT_EQ(translated(name), "none") << name;
  }
}

TEST(HfNames, Configuration) {
  EXPECT_EQ(hf_architecture("mistral"), "llama");
  EXPECT_EQ(hf_architecture("qwen3_moe"), "qwen3moe");
  EXPECT_EQ(hf_architecture("mamba"), "mamba");
  EXPECT_THAT(hf_config_paths("embedding_length"), ElementsAre("hidden_size"));
  EXPECT_THAT(hf_config_paths("rope.freq_base"), ElementsAre("rope_parameters.rope_theta", "rope_theta"));
  EXPECT_THAT(hf_config_paths("rope.scaling.type"), ElementsAre("rope_parameters.rope_type", "rope_parameters.type",
                                                                "rope_scaling.rope_type", "rope_scaling.type"));
  EXPECT_THAT(hf_config_paths("nonesuch"), ElementsAre());
}

}  // namespace
}  // namespace headrace::models
