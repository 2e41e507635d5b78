// Qwen 3's mixtures of experts. Yang et al. 2025 (arXiv 2505.09388).
#include "models/decoder.hpp"

namespace headrace::models {

namespace {

Model build(const Checkpoint& file, const StepLimits& limits) {
  Decoder decoder = read_decoder(file, "qwen3moe");
  require_experts(file, decoder);
  decoder.layer.attention.norm = AttentionBlock::Norm::heads;
  // GGUF files do not say so, but all of these models divide the weights by their sum.
  const bool normalized = file.boolean("expert_weights_norm").value_or(true);
  decoder.layer.feed_forward =
      ExpertBlock{.weights = normalized ? ExpertBlock::Weights::normalized_softmax : ExpertBlock::Weights::softmax};
  return build_decoder(file, limits, decoder);
}

}  // namespace

Family family_qwen3moe() { return {"qwen3moe", build}; }

}  // namespace headrace::models
