// A directory as transformers saves it (config.json, safetensors, tokenizer.json) as a Checkpoint.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/hf_config.hpp"
#include "formats/safetensors_folder.hpp"
#include "models/checkpoint.hpp"
#include "stream/sharded_store.hpp"

namespace headrace::models {

class HfCheckpoint : public Checkpoint {
 public:
  /// Reads config.json and the headers of the weights. Throws InputError naming file and field, or tensor.
  explicit HfCheckpoint(std::string directory);

  [[nodiscard]] Container container() const override { return Container::hugging_face; }
  [[nodiscard]] std::string container_name() const override { return "Hugging Face directory"; }
  [[nodiscard]] const std::string& path() const override { return directory_; }
  [[nodiscard]] std::uint64_t file_bytes() const override { return folder_.file_bytes(); }
  [[nodiscard]] std::string architecture() const override;
  [[nodiscard]] std::string_view architecture_key() const override { return "config.json: model_type"; }
  [[nodiscard]] std::string model_name() const override;

  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key) const override;
  [[nodiscard]] std::optional<double> number(std::string_view key) const override;
  [[nodiscard]] std::optional<bool> boolean(std::string_view key) const override;
  [[nodiscard]] std::optional<std::string> string(std::string_view key) const override;
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(std::string_view key) const override;
  [[nodiscard]] std::string key_name(std::string_view key) const override;

  [[nodiscard]] std::span<const CheckpointTensor> tensors() const override { return tensors_; }
  [[nodiscard]] const CheckpointTensor* find_tensor(std::string_view name) const override;

  [[nodiscard]] bool has_vocabulary() const override;
  [[nodiscard]] text::VocabularyData vocabulary() const override;
  [[nodiscard]] std::optional<std::string> chat_template() const override;

  [[nodiscard]] std::unique_ptr<stream::WeightStore> store() const override;

 private:
  using Place = formats::SafetensorsFolder::Place;
  struct Source {
    std::vector<Place> places;            ///< one, or one an expert
    stream::ShardedStore::Reader reader;  ///< if it is made while it is read
  };

  /// The value at the first of the paths of `key` that is there.
  [[nodiscard]] std::optional<formats::JsonField> find(std::string_view key) const;
  void check_config() const;
  void list_tensors();
  void add_tensor(const std::string& name, std::vector<Place> places, bool stacked);
  void sort_tensors();

  std::string directory_;
  formats::HfConfig config_;
  formats::SafetensorsFolder folder_;
  std::vector<CheckpointTensor> tensors_;  ///< sorted by name
  std::vector<Source> sources_;            ///< of each
};

}  // namespace headrace::models
