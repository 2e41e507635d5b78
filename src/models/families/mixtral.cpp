// Mixtral as directories of Hugging Face name it; GGUF files call it a llama. Jiang et al. 2024 (arXiv 2401.04088).
#include "models/decoder.hpp"

namespace headrace::models {

namespace {

Model build(const Checkpoint& file, const StepLimits& limits) {
  Decoder decoder = read_decoder(file, "mixtral");
  require_experts(file, decoder);
  if (file.container() == Checkpoint::Container::gguf) decoder.layer.attention.pairing = "adjacent";
  decoder.layer.feed_forward = ExpertBlock{.weights = ExpertBlock::Weights::normalized_softmax};
  return build_decoder(file, limits, decoder);
}

}  // namespace

Family family_mixtral() { return {"mixtral", build}; }

}  // namespace headrace::models
