// GGUF's tokenizer.ggml.* keys, one by one.
#include "text/gguf_vocabulary.hpp"

#include <limits>
#include <string_view>

#include "base/error.hpp"

namespace headrace::text {

namespace {

std::vector<std::string> copy_strings(const StringArray& strings) {
  std::vector<std::string> copy;
  copy.reserve(strings.size());
  for (std::size_t i = 0; i < strings.size(); ++i) copy.emplace_back(strings[i]);
  return copy;
}

std::vector<TokenType> read_types(const formats::Gguf& file) {
  constexpr std::string_view kKey = "tokenizer.ggml.token_type";
  std::vector<TokenType> types;
  if (!file.has(kKey)) return types;
  for (const std::int64_t number : file.integers(kKey)) {
    if (number < static_cast<int>(TokenType::normal) || number > static_cast<int>(TokenType::byte)) {
      fail<InputError>("{}: {}[{}]: expected a type from 1 to 6, found {}", file.file_name(), kKey, types.size(),
                       number);
    }
    types.push_back(static_cast<TokenType>(number));
  }
  return types;
}

std::optional<TokenId> read_id(const formats::Gguf& file, std::string_view key) {
  if (!file.has(key)) return std::nullopt;
  const std::uint64_t id = file.u64(key);
  if (id > static_cast<std::uint64_t>(std::numeric_limits<TokenId>::max())) {
    fail<InputError>("{}: {}: expected an id below 2^31, found {}", file.file_name(), key, id);
  }
  return static_cast<TokenId>(id);
}

std::optional<bool> read_flag(const formats::Gguf& file, std::string_view key) {
  if (!file.has(key)) return std::nullopt;
  return file.boolean(key);
}

}  // namespace

VocabularyData read_vocabulary(const formats::Gguf& file) {
  VocabularyData data;
  data.source = file.file_name();
  data.model = file.string("tokenizer.ggml.model");
  data.pre_tokenizer = file.string("tokenizer.ggml.pre", "");
  data.tokens = copy_strings(file.strings("tokenizer.ggml.tokens"));
  data.types = read_types(file);
  if (file.has("tokenizer.ggml.scores")) data.scores = file.floats("tokenizer.ggml.scores");
  if (file.has("tokenizer.ggml.merges")) data.merges = copy_strings(file.strings("tokenizer.ggml.merges"));
  data.bos = read_id(file, "tokenizer.ggml.bos_token_id");
  data.eos = read_id(file, "tokenizer.ggml.eos_token_id");
  data.eot = read_id(file, "tokenizer.ggml.eot_token_id");
  data.eom = read_id(file, "tokenizer.ggml.eom_token_id");
  data.unknown = read_id(file, "tokenizer.ggml.unknown_token_id");
  data.padding = read_id(file, "tokenizer.ggml.padding_token_id");
  data.add_bos = read_flag(file, "tokenizer.ggml.add_bos_token");
  data.add_eos = read_flag(file, "tokenizer.ggml.add_eos_token");
  const bool is_sentencepiece = data.model == "llama";
  if (file.boolean("tokenizer.ggml.add_space_prefix", is_sentencepiece)) {
    data.space_prefix = is_sentencepiece ? SpacePrefix::always : SpacePrefix::unless_space;
    data.strip_leading_space = is_sentencepiece;
  }
  return data;
}

}  // namespace headrace::text
