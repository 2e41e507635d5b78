// What a directory of Hugging Face calls tensors and configuration, and what GGUF calls them: tables. The families see
// GGUF's names only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::models {

/// The family of a model_type ("qwen3_moe" is "qwen3moe"), or the model_type itself.
std::string hf_architecture(std::string_view model_type);

/// The dotted paths in config.json that may hold a key of GGUF's, the first that is there counts; empty if none does.
std::vector<std::string> hf_config_paths(std::string_view key);

struct HfTensorName {
  std::string name;                    ///< GGUF's
  std::optional<std::int64_t> expert;  ///< it is this one of the experts that GGUF stacks
};

/// GGUF's name of a tensor, or nothing if the tables have none: "model.layers.3.mlp.experts.7.up_proj.weight" is expert
/// 7 of "blk.3.ffn_up_exps.weight".
std::optional<HfTensorName> gguf_tensor_name(std::string_view hf_name, std::string_view architecture);

}  // namespace headrace::models
