// A GGUF file as a Checkpoint.
#pragma once

#include <memory>
#include <optional>

#include "base/file.hpp"
#include "formats/gguf.hpp"
#include "models/checkpoint.hpp"

namespace headrace::models {

class GgufCheckpoint : public Checkpoint {
 public:
  /// Reads the header of the file. Throws InputError.
  explicit GgufCheckpoint(const std::string& path);
  /// A header alone, without weights: store() throws InternalError. For tests.
  explicit GgufCheckpoint(formats::Gguf header);

  [[nodiscard]] Container container() const override { return Container::gguf; }
  [[nodiscard]] std::string container_name() const override;
  [[nodiscard]] const std::string& path() const override { return gguf_.file_name(); }
  [[nodiscard]] std::uint64_t file_bytes() const override { return file_ ? file_->size() : 0; }
  [[nodiscard]] std::string architecture() const override;
  [[nodiscard]] std::string_view architecture_key() const override { return "general.architecture"; }
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
  void list_tensors();

  std::optional<File> file_;
  formats::Gguf gguf_;
  std::vector<CheckpointTensor> tensors_;  ///< as gguf_.tensors()
};

}  // namespace headrace::models
