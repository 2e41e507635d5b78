// OLMoE: norms of q and k over all heads together, weights of experts that do not sum to 1. Muennighoff et al. 2024
// (arXiv 2409.02060).
#include "models/decoder.hpp"

namespace headrace::models {

namespace {

Model build(const Checkpoint& file, const StepLimits& limits) {
  Decoder decoder = read_decoder(file, "olmoe");
  require_experts(file, decoder);
  decoder.layer.attention.norm = AttentionBlock::Norm::width;
  const bool normalized = file.boolean("expert_weights_norm").value_or(false);
  decoder.layer.feed_forward =
      ExpertBlock{.weights = normalized ? ExpertBlock::Weights::normalized_softmax : ExpertBlock::Weights::softmax};
  return build_decoder(file, limits, decoder);
}

}  // namespace

Family family_olmoe() { return {"olmoe", build}; }

}  // namespace headrace::models
