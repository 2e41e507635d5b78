#include "models/checkpoint.hpp"

#include "models/gguf_checkpoint.hpp"

namespace headrace::models {

std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path) { return std::make_unique<GgufCheckpoint>(path); }

}  // namespace headrace::models
