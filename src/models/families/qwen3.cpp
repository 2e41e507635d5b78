// Qwen 3: heads of a width of their own, with a norm of each head of q and k. Yang et al. 2025 (arXiv 2505.09388).
#include "models/decoder.hpp"

namespace headrace::models {

namespace {

Model build(const Checkpoint& file, const StepLimits& limits) {
  Decoder decoder = read_decoder(file, "qwen3");
  decoder.layer.attention.norm = AttentionBlock::Norm::heads;
  return build_decoder(file, limits, decoder);
}

}  // namespace

Family family_qwen3() { return {"qwen3", build}; }

}  // namespace headrace::models
