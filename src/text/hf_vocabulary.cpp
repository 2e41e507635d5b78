#include "text/hf_vocabulary.hpp"

#include <algorithm>

#include <unistd.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "text/tokenizer_json.hpp"

namespace headrace::text {

namespace {

using formats::JsonField;

/// The largest tokenizer.json that models have is of some 35 MB.
constexpr std::uint64_t kMaxBytes = 256'000'000;

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// A JSON file of the directory; an empty object if it is not there.
struct Document {
  explicit Document(std::string path)
      : name(std::move(path)),
        root(exists(name) ? formats::parse_json(name, read_text(name, kMaxBytes)) : nlohmann::json::object()) {}
  [[nodiscard]] JsonField field() const { return {name, root}; }
  std::string name;
  nlohmann::json root;
};

/// The id of the token that the file names as `key`: a string, or an object with its content.
std::optional<TokenId> named_token(const Document& document, std::string_view key, const VocabularyData& data) {
  const auto field = document.field().find(key);
  if (!field) return std::nullopt;
  const std::string content = field->json().is_object() ? field->at("content").string() : field->string();
  if (content.empty()) return std::nullopt;
  const auto found = std::ranges::find(data.tokens, content);
  if (found == data.tokens.end()) field->refuse("a token of tokenizer.json");
  return static_cast<TokenId>(found - data.tokens.begin());
}

}  // namespace

bool has_hf_vocabulary(const std::string& directory) { return exists(directory + "/tokenizer.json"); }

VocabularyData read_hf_vocabulary(const std::string& directory, const formats::HfConfig& config) {
  const std::string name = directory + "/tokenizer.json";
  if (!exists(name)) {
    fail<InputError>("{}: expected a tokenizer.json, found none{}", directory,
                     exists(directory + "/tokenizer.model") ? " (tokenizer.model is not read)" : "");
  }
  VocabularyData data = read_tokenizer_json(name, read_text(name, kMaxBytes));
  const Document tokenizer(directory + "/tokenizer_config.json");
  const Document special(directory + "/special_tokens_map.json");
  const auto find = [&](std::string_view key) {
    const auto id = named_token(tokenizer, key, data);
    return id ? id : named_token(special, key, data);
  };
  if (!data.bos) data.bos = find("bos_token");
  if (!data.eos) data.eos = find("eos_token");
  data.padding = find("pad_token");
  for (const std::int64_t id : config.eos_token_ids()) {
    // A model may name ids beyond its tokenizer's; no text has them.
    if (id >= 0 && id < std::ssize(data.tokens)) data.end_of_generation.push_back(static_cast<TokenId>(id));
  }
  if (!data.eos && !data.end_of_generation.empty()) data.eos = data.end_of_generation.front();
  return data;
}

std::optional<std::string> read_hf_chat_template(const std::string& directory) {
  const std::string jinja = directory + "/chat_template.jinja";
  if (exists(jinja)) return read_text(jinja, kMaxBytes);
  const Document tokenizer(directory + "/tokenizer_config.json");
  const auto source = tokenizer.field().find("chat_template");
  if (!source) return std::nullopt;
  if (!source->json().is_array()) return source->string();
  for (std::size_t i = 0; i < source->size(); ++i) {
    const JsonField item = (*source)[i];
    if (source->size() == 1 || item.at("name").string() == "default") return item.at("template").string();
  }
  source->refuse("one chat template, or one of the name default");
}

}  // namespace headrace::text
