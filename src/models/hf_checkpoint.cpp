#include "models/hf_checkpoint.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/quote.hpp"
#include "models/hf_gpt_oss.hpp"
#include "models/hf_names.hpp"
#include "stream/sharded_store.hpp"
#include "text/hf_vocabulary.hpp"

namespace headrace::models {

using formats::JsonField;

HfCheckpoint::HfCheckpoint(std::string directory)
    : directory_(std::move(directory)),
      config_(formats::HfConfig::read(directory_)),
      folder_(formats::SafetensorsFolder::open(directory_)) {
  check_config();
  list_tensors();
}

/// What would change the numbers and is not looked at anywhere else.
void HfCheckpoint::check_config() const {
  const auto must_be = [&](std::string_view path, const nlohmann::json& expected) {
    const auto field = config_.find(path);
    if (field && field->json() != expected) field->refuse(expected.dump());
  };
  must_be("hidden_act", "silu");
  must_be("clip_qkv", nullptr);
  must_be("use_sliding_window", false);
  must_be("partial_rotary_factor", 1.0);
  must_be("rope_parameters.partial_rotary_factor", 1.0);
  if (architecture() == "gpt-oss") {
    must_be("quantization_config.quant_method", "mxfp4");
    must_be("swiglu_alpha", 1.702);
    must_be("swiglu_limit", 7.0);
    const auto layers = config_.find("layer_types");
    for (std::size_t i = 0; layers && i < layers->size(); ++i) {
      const std::string_view expected = i % 2 == 0 ? "sliding_attention" : "full_attention";
      if ((*layers)[i].string() != expected) (*layers)[i].refuse(expected);
    }
  } else {
    must_be("quantization_config", nullptr);
  }
}

std::string HfCheckpoint::architecture() const { return hf_architecture(config_.string("model_type").value_or("")); }

std::string HfCheckpoint::model_name() const {
  const std::string name = config_.string("_name_or_path").value_or("");
  return name.starts_with('/') || name.starts_with('.') ? "" : name;
}

std::optional<JsonField> HfCheckpoint::find(std::string_view key) const {
  for (const std::string& path : hf_config_paths(key)) {
    if (auto field = config_.find(path)) return field;
  }
  return std::nullopt;
}

std::optional<std::int64_t> HfCheckpoint::integer(std::string_view key) const {
  const auto field = find(key);
  if (!field) {
    // Yarn's default.
    if (key == "rope.scaling.original_context_length") return integer("context_length");
    return std::nullopt;
  }
  // These families name a window and switch it off.
  if (key == "attention.sliding_window" && config_.boolean("use_sliding_window") == false) return std::nullopt;
  return field->i64();
}

std::optional<double> HfCheckpoint::number(std::string_view key) const {
  const auto field = find(key);
  return field ? std::optional(field->number()) : std::nullopt;
}

std::optional<bool> HfCheckpoint::boolean(std::string_view key) const {
  const auto field = find(key);
  return field ? std::optional(field->boolean()) : std::nullopt;
}

std::optional<std::string> HfCheckpoint::string(std::string_view key) const {
  const auto field = find(key);
  if (!field) return std::nullopt;
  const std::string& value = field->string();
  return key == "rope.scaling.type" && value == "default" ? "none" : value;
}

std::optional<std::vector<std::int64_t>> HfCheckpoint::integers(std::string_view key) const {
  const auto field = find(key);
  if (!field) return std::nullopt;
  if (!field->json().is_array()) return std::vector<std::int64_t>{field->i64()};
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < field->size(); ++i) values.push_back((*field)[i].i64());
  return values;
}

std::string HfCheckpoint::key_name(std::string_view key) const {
  if (const auto field = find(key)) return "config.json: " + field->path();
  const std::vector<std::string> paths = hf_config_paths(key);
  return "config.json: " + (paths.empty() ? std::string(key) : paths.back());
}

void HfCheckpoint::list_tensors() {
  const bool is_tied = config_.boolean("tie_word_embeddings").value_or(false);
  const std::string family = architecture();
  const bool is_gpt_oss = family == "gpt-oss";
  std::map<std::string, Place, std::less<>> whole;
  std::map<std::string, std::map<std::int64_t, Place>, std::less<>> stacked;
  for (const auto& [hf_name, place] : folder_.tensors()) {
    if (hf_name.ends_with(".rotary_emb.inv_freq")) continue;       // old files have it; it follows from the config
    if (is_tied && hf_name.ends_with("lm_head.weight")) continue;  // a copy of the embedding
    if (is_gpt_oss && is_gpt_oss_expert_tensor(hf_name)) continue;
    const auto named = gguf_tensor_name(hf_name, family);
    // A family refuses names that it does not know.
    const std::string name = named ? named->name : std::string(hf_name);
    const bool is_new = named && named->expert ? stacked[name].emplace(*named->expert, place).second
                                               : whole.emplace(name, place).second;
    if (!is_new) {
      fail<InputError>("{}: tensor {}: expected one tensor for {}, found two", place.file->path(),
                       headrace::quoted(hf_name), headrace::quoted(name));
    }
  }
  const bool says_untied = config_.boolean("tie_word_embeddings") == false;
  if (says_untied && !whole.contains("output.weight") && whole.contains("token_embd.weight")) {
    fail<InputError>("{}: expected the tensor 'lm_head.weight', since tie_word_embeddings is false, found none",
                     directory_);
  }
  for (const auto& [name, experts] : stacked) {
    std::vector<Place> places;
    for (const auto& [expert, place] : experts) {
      if (expert != std::ssize(places)) {
        fail<InputError>("{}: tensor {}: expected experts 0 to {}, found none of number {}", place.file->path(),
                         headrace::quoted(place.tensor->name), experts.rbegin()->first, places.size());
      }
      places.push_back(place);
    }
    if (whole.contains(name)) {
      fail<InputError>("{}: tensor {}: expected one expert after the other or all together, found both", directory_,
                       headrace::quoted(name));
    }
    add_tensor(name, std::move(places), /*stacked=*/true);
  }
  for (const auto& [name, place] : whole) add_tensor(name, {place}, /*stacked=*/false);
  if (is_gpt_oss) {
    for (DerivedTensor& derived : derive_gpt_oss_experts(folder_)) {
      CheckpointTensor tensor;
      tensor.name = derived.name;
      tensor.shape = std::move(derived.shape);
      tensor.format = derived.format;
      tensor.format_name = std::string(derived.format->name);
      tensor.bytes = derived.bytes;
      tensors_.push_back(std::move(tensor));
      sources_.push_back({{}, std::move(derived.reader)});
    }
  }
  sort_tensors();
}

void HfCheckpoint::sort_tensors() {
  std::vector<std::size_t> order(tensors_.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::size_t i) -> const std::string& { return tensors_[i].name; });
  std::vector<CheckpointTensor> tensors;
  std::vector<Source> sources;
  for (const std::size_t i : order) {
    tensors.push_back(std::move(tensors_[i]));
    sources.push_back(std::move(sources_[i]));
  }
  tensors_ = std::move(tensors);
  sources_ = std::move(sources);
  const auto twice = std::ranges::adjacent_find(tensors_, {}, &CheckpointTensor::name);
  if (twice != tensors_.end()) {
    fail<InputError>("{}: expected one tensor for {}, found two", directory_, headrace::quoted(twice->name));
  }
}

void HfCheckpoint::add_tensor(const std::string& name, std::vector<Place> places, bool stacked) {
  const formats::SafetensorsTensor& first = *places[0].tensor;
  for (const Place& place : places) {
    if (place.tensor->dtype == first.dtype && place.tensor->shape == first.shape) continue;
    fail<InputError>("{}: tensor {}: expected dtype and shape of expert 0, which is {}, found others",
                     place.file->path(), headrace::quoted(place.tensor->name), first.dtype);
  }
  CheckpointTensor tensor;
  tensor.name = name;
  tensor.shape = first.shape;
  if (stacked) tensor.shape.insert(tensor.shape.begin(), std::ssize(places));
  tensor.format = first.format;
  tensor.format_name = first.format != nullptr ? std::string(first.format->name) : first.dtype;
  if (first.format != nullptr) tensor.bytes = first.bytes * places.size();
  tensors_.push_back(std::move(tensor));
  sources_.push_back({std::move(places), nullptr});
}

const CheckpointTensor* HfCheckpoint::find_tensor(std::string_view name) const {
  const auto found = std::ranges::lower_bound(tensors_, name, {}, &CheckpointTensor::name);
  return found == tensors_.end() || found->name != name ? nullptr : &*found;
}

bool HfCheckpoint::has_vocabulary() const { return text::has_hf_vocabulary(directory_); }

text::VocabularyData HfCheckpoint::vocabulary() const {
  text::VocabularyData data = text::read_hf_vocabulary(directory_, config_);
  const CheckpointTensor* embedding = find_tensor("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) return data;
  // Embeddings may have more rows than the tokenizer has tokens, so that their number is a round one.
  const auto rows = static_cast<std::size_t>(embedding->shape[0]);
  if (data.tokens.size() > rows) {
    fail<InputError>("{}: expected at most {} tokens, as many as the embedding has rows, found {}", data.source, rows,
                     data.tokens.size());
  }
  data.tokens.resize(rows);
  data.types.resize(rows, text::TokenType::unused);
  return data;
}

std::optional<std::string> HfCheckpoint::chat_template() const { return text::read_hf_chat_template(directory_); }

std::unique_ptr<stream::WeightStore> HfCheckpoint::store() const {
  auto store = std::make_unique<stream::ShardedStore>();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].bytes) continue;
    if (sources_[i].reader) {
      store->add(tensors_[i].name, *tensors_[i].bytes, sources_[i].reader);
      continue;
    }
    std::vector<stream::ShardedStore::Piece> pieces;
    for (const Place& place : sources_[i].places) {
      pieces.push_back({place.file, place.tensor->offset, place.tensor->bytes});
    }
    store->add(tensors_[i].name, pieces);
  }
  return store;
}

}  // namespace headrace::models
