// Llama 1 to 3, Mistral, SmolLM, and Mixtral, which GGUF files call a llama with experts.
// Touvron et al. 2023 (arXiv 2302.13971), Jiang et al. 2024 (arXiv 2401.04088).
#include "models/decoder.hpp"

namespace headrace::models {

namespace {

Model build(const Checkpoint& file, const StepLimits& limits) {
  Decoder decoder = read_decoder(file, "llama");
  // Converters to GGUF reorder the rows of q and k, so that the numbers that are turned together are neighbours.
  if (file.container() == Checkpoint::Container::gguf) decoder.layer.attention.pairing = "adjacent";
  if (decoder.shape.experts > 0)
    decoder.layer.feed_forward = ExpertBlock{.weights = ExpertBlock::Weights::normalized_softmax};
  return build_decoder(file, limits, decoder);
}

}  // namespace

Family family_llama() { return {"llama", build}; }

}  // namespace headrace::models
