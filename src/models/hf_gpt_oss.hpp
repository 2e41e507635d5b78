// The experts of gpt-oss in a directory of Hugging Face: gate and up interleaved in one tensor, either transposed
// floats, or MXFP4 as blocks and scales apart. They become GGUF's tensors while they are read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/safetensors_folder.hpp"
#include "stream/sharded_store.hpp"

namespace headrace::models {

/// A tensor that is made from others of the files while it is read.
struct DerivedTensor {
  std::string name;  ///< GGUF's
  std::vector<std::int64_t> shape;
  const formats::Format* format = nullptr;
  std::uint64_t bytes = 0;
  stream::ShardedStore::Reader reader;  ///< the folder's files must outlive it
};

/// Whether it is one of the tensors that derive_gpt_oss_experts reads.
bool is_gpt_oss_expert_tensor(std::string_view hf_name);

/// All ffn_{gate,up,down}_exps.{weight,bias} of the folder. Of each layer (X experts, width D, feed-forward F):
///   gate_up_proj [X, D, 2 F], down_proj [X, F, D] of floats, or
///   gate_up_proj_blocks u8 [X, 2 F, D / 32, 16], gate_up_proj_scales u8 [X, 2 F, D / 32] and the same of down_proj;
///   gate_up_proj_bias [X, 2 F], down_proj_bias [X, D].
/// Output 2 i of gate_up is output i of gate, 2 i + 1 of up (openai/gpt-oss, gpt_oss/torch/model.py). Throws InputError
/// naming file and tensor if a shape or a dtype is another.
std::vector<DerivedTensor> derive_gpt_oss_experts(const formats::SafetensorsFolder& folder);

}  // namespace headrace::models
