#include "models/gguf_checkpoint.hpp"

#include <utility>

#include "base/error.hpp"
#include "text/gguf_vocabulary.hpp"

namespace headrace::models {

GgufCheckpoint::GgufCheckpoint(const std::string& path)
    : file_(std::in_place, path), gguf_(formats::Gguf::read(*file_)) {
  list_tensors();
}

GgufCheckpoint::GgufCheckpoint(formats::Gguf header) : gguf_(std::move(header)) { list_tensors(); }

void GgufCheckpoint::list_tensors() {
  for (const formats::GgufTensor& tensor : gguf_.tensors()) {
    CheckpointTensor listed;
    listed.name = tensor.name;
    // A file counts dimensions from the one along a row.
    listed.shape.assign(tensor.dimensions.rbegin(), tensor.dimensions.rend());
    listed.format = tensor.format;
    listed.format_name =
        tensor.format != nullptr ? std::string(tensor.format->name) : formats::gguf_type_name(tensor.gguf_type);
    listed.bytes = tensor.bytes;
    tensors_.push_back(std::move(listed));
  }
}

std::string GgufCheckpoint::container_name() const { return "GGUF version " + std::to_string(gguf_.version()); }

std::string GgufCheckpoint::architecture() const { return gguf_.string("general.architecture", ""); }

std::string GgufCheckpoint::model_name() const { return gguf_.string("general.name", ""); }

std::string GgufCheckpoint::key_name(std::string_view key) const { return architecture() + "." + std::string(key); }

std::optional<std::int64_t> GgufCheckpoint::integer(std::string_view key) const {
  const std::string name = key_name(key);
  if (!gguf_.has(name)) return std::nullopt;
  return gguf_.i64(name);
}

std::optional<double> GgufCheckpoint::number(std::string_view key) const {
  const std::string name = key_name(key);
  if (!gguf_.has(name)) return std::nullopt;
  return static_cast<double>(gguf_.f32(name));
}

std::optional<bool> GgufCheckpoint::boolean(std::string_view key) const {
  const std::string name = key_name(key);
  if (!gguf_.has(name)) return std::nullopt;
  return gguf_.boolean(name);
}

std::optional<std::string> GgufCheckpoint::string(std::string_view key) const {
  const std::string name = key_name(key);
  if (!gguf_.has(name)) return std::nullopt;
  return gguf_.string(name);
}

std::optional<std::vector<std::int64_t>> GgufCheckpoint::integers(std::string_view key) const {
  const std::string name = key_name(key);
  if (!gguf_.has(name)) return std::nullopt;
  return gguf_.integers(name);
}

const CheckpointTensor* GgufCheckpoint::find_tensor(std::string_view name) const {
  const formats::GgufTensor* tensor = gguf_.find_tensor(name);
  return tensor == nullptr ? nullptr : &tensors_[static_cast<std::size_t>(tensor - gguf_.tensors().data())];
}

bool GgufCheckpoint::has_vocabulary() const { return gguf_.has("tokenizer.ggml.tokens"); }

text::VocabularyData GgufCheckpoint::vocabulary() const { return text::read_vocabulary(gguf_); }

std::optional<std::string> GgufCheckpoint::chat_template() const {
  if (!gguf_.has("tokenizer.chat_template")) return std::nullopt;
  return gguf_.string("tokenizer.chat_template");
}

std::unique_ptr<stream::WeightStore> GgufCheckpoint::store() const {
  require(file_.has_value(), "a Checkpoint with weights");
  auto store = std::make_unique<stream::FileStore>(*file_);
  for (const formats::GgufTensor& tensor : gguf_.tensors()) {
    // Tensors of unknown Formats have no size; building the Program refuses those that it needs.
    if (tensor.bytes) store->add(tensor.name, tensor.offset, *tensor.bytes);
  }
  return store;
}

}  // namespace headrace::models
