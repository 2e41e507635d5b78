#include "models/checkpoint.hpp"

#include <sys/stat.h>

#include "models/gguf_checkpoint.hpp"
#include "models/hf_checkpoint.hpp"

namespace headrace::models {

std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return std::make_unique<HfCheckpoint>(path);
  return std::make_unique<GgufCheckpoint>(path);
}

}  // namespace headrace::models
