// Checkpoint: a model as it lies on a disk, whichever container holds it: configuration, tensors, tokenizer.
// Families and the runtime see this and no container. The names of keys and tensors are GGUF's; a container with names
// of its own translates them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.hpp"
#include "stream/weight_store.hpp"
#include "text/vocabulary.hpp"

namespace headrace::models {

struct CheckpointTensor {
  std::string name;                         ///< GGUF's, "blk.0.attn_q.weight"
  std::vector<std::int64_t> shape;          ///< [N, K], [X, N, K], [N]: the dimension along a row last
  const formats::Format* format = nullptr;  ///< nullptr if it is none of ours
  std::string format_name;                  ///< of any, for messages
  std::optional<std::uint64_t> bytes;       ///< known with the Format
  [[nodiscard]] std::int64_t elements() const noexcept {
    std::int64_t count = 1;
    for (const std::int64_t size : shape) count *= size;
    return count;
  }
};

class Checkpoint {
 public:
  enum class Container : std::uint8_t { gguf, hugging_face };

  virtual ~Checkpoint() = default;
  /// Where the rows of q and k lie for rotary embeddings, and other habits of converters, differ by container.
  [[nodiscard]] virtual Container container() const = 0;
  /// "GGUF version 3", for reports.
  [[nodiscard]] virtual std::string container_name() const = 0;
  /// Of the file or directory, as it was given.
  [[nodiscard]] virtual const std::string& path() const = 0;
  [[nodiscard]] virtual std::uint64_t file_bytes() const = 0;
  /// The family's name ("llama"), or "" if none is given.
  [[nodiscard]] virtual std::string architecture() const = 0;
  /// The key that names it, for messages: "general.architecture".
  [[nodiscard]] virtual std::string_view architecture_key() const = 0;
  /// What its makers call the model, or "".
  [[nodiscard]] virtual std::string model_name() const = 0;

  /// Configuration by GGUF's key without the architecture before it: "block_count", "rope.scaling.type".
  /// Nothing if the key is missing; throws InputError naming file, key and types if the value is of another type.
  [[nodiscard]] virtual std::optional<std::int64_t> integer(std::string_view key) const = 0;
  [[nodiscard]] virtual std::optional<double> number(std::string_view key) const = 0;
  [[nodiscard]] virtual std::optional<bool> boolean(std::string_view key) const = 0;
  [[nodiscard]] virtual std::optional<std::string> string(std::string_view key) const = 0;
  [[nodiscard]] virtual std::optional<std::vector<std::int64_t>> integers(std::string_view key) const = 0;
  /// The key as the file has it, for messages: "llama.block_count".
  [[nodiscard]] virtual std::string key_name(std::string_view key) const = 0;

  [[nodiscard]] virtual std::span<const CheckpointTensor> tensors() const = 0;
  /// nullptr if there is none of this name.
  [[nodiscard]] virtual const CheckpointTensor* find_tensor(std::string_view name) const = 0;

  [[nodiscard]] virtual bool has_vocabulary() const = 0;
  /// Throws InputError if there is none, or a broken one.
  [[nodiscard]] virtual text::VocabularyData vocabulary() const = 0;
  /// Jinja source, if the model has one.
  [[nodiscard]] virtual std::optional<std::string> chat_template() const = 0;

  /// The bytes of all tensors of known Formats, by name. The Checkpoint must outlive it.
  [[nodiscard]] virtual std::unique_ptr<stream::WeightStore> store() const = 0;
};

/// Opens the file or directory at `path`. Throws InputError or ResourceError.
std::unique_ptr<Checkpoint> open_checkpoint(const std::string& path);

}  // namespace headrace::models
