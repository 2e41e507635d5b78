// What `info` says of a model file, gathered once for its text and its JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "compile/plan.hpp"
#include "models/language_model.hpp"

namespace headrace::cli {

struct FormatUse {
  std::string format;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::optional<std::uint64_t> bytes;  ///< in the file; unknown for Formats that are none of ours
};

/// What running the model takes.
struct MemoryUse {
  std::int64_t context = 0;
  std::int64_t weight_bytes = 0;  ///< in their Layouts
  std::string kv_encoding;        ///< f16, bf16 or q8_0
  std::int64_t kv_bytes = 0;
  std::int64_t kv_bytes_per_position = 0;
  std::int64_t arena_bytes = 0;
  std::int64_t token_bytes = 0;  ///< of Weights, as the file has them, that one token alone reads
  [[nodiscard]] std::int64_t total_bytes() const { return weight_bytes + kv_bytes + arena_bytes; }
};

struct ModelReport {
  std::string path;
  std::uint64_t file_bytes = 0;
  std::string container;  ///< "GGUF version 3"
  std::string architecture;
  std::string name;
  std::int64_t tensors = 0;
  std::int64_t parameters = 0;
  std::vector<FormatUse> formats;
  std::string tokenizer_model;
  std::string pre_tokenizer;
  std::int64_t tokens = 0;  ///< of the tokenizer; 0 if the file has none
  bool chat_template = false;
  std::optional<models::ModelShape> shape;
  std::optional<MemoryUse> memory;
  std::string reason;  ///< why it cannot be run, if it has no shape or memory
};

/// What the header says.
ModelReport report_of(const models::ModelFile& file);
MemoryUse memory_of(const compile::Plan& plan);

std::string to_text(const ModelReport& report);
nlohmann::ordered_json to_json(const ModelReport& report);

}  // namespace headrace::cli
