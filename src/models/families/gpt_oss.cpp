// gpt-oss: experts with biases and a clamped gate, attention with sinks, a window in every second layer. OpenAI 2025
// (arXiv 2508.10925).
#include "models/decoder.hpp"

namespace headrace::models {

namespace {

Model build(const Checkpoint& file, const StepLimits& limits) {
  Decoder decoder = read_decoder(file, "gpt-oss", {.truncate = false, .window_pattern = 2});
  require_experts(file, decoder);
  decoder.layer.attention.sinks = true;
  decoder.layer.feed_forward_norm = "post_attention_norm.weight";
  decoder.layer.feed_forward = ExpertBlock{.weights = ExpertBlock::Weights::softmax_of_chosen, .clamped = true};
  return build_decoder(file, limits, decoder);
}

}  // namespace

Family family_gpt_oss() { return {"gpt-oss", build}; }

}  // namespace headrace::models
