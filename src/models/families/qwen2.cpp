// Qwen 2 and 2.5: llamas with biases of q, k and v. Yang et al. 2024 (arXiv 2407.10671).
#include "models/decoder.hpp"

namespace headrace::models {

namespace {

Model build(const Checkpoint& file, const StepLimits& limits) {
  return build_decoder(file, limits, read_decoder(file, "qwen2"));
}

}  // namespace

Family family_qwen2() { return {"qwen2", build}; }

}  // namespace headrace::models
