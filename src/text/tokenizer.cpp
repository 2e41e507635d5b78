// Special tokens around the model's ids; see tokenizer.hpp.
#include "text/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.hpp"
#include "base/quote.hpp"
#include "text/byte_level_bpe.hpp"

namespace headrace::text {

namespace {

/// Control tokens that end a turn or a text in the models that have them.
constexpr std::array<std::string_view, 8> kEndOfGenerationNames = {
    "<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "</s>"};

void check_data(const VocabularyData& data) {
  const std::size_t count = data.tokens.size();
  if (count == 0 || count > static_cast<std::size_t>(std::numeric_limits<TokenId>::max())) {
    fail<InputError>("{}: tokenizer.ggml.tokens: expected 1 to 2^31-1 tokens, found {}", data.source, count);
  }
  if (!data.types.empty() && data.types.size() != count) {
    fail<InputError>("{}: tokenizer.ggml.token_type: expected {} types, found {}", data.source, count,
                     data.types.size());
  }
  const auto check_id = [&](std::string_view name, std::optional<TokenId> id) {
    if (id && (*id < 0 || static_cast<std::size_t>(*id) >= count)) {
      fail<InputError>("{}: tokenizer.ggml.{}_token_id: expected an id below {}, found {}", data.source, name, count,
                       *id);
    }
  };
  check_id("bos", data.bos);
  check_id("eos", data.eos);
  check_id("eot", data.eot);
  check_id("eom", data.eom);
  check_id("unknown", data.unknown);
  check_id("padding", data.padding);
}

std::unique_ptr<const TokenizerModel> make_model(const VocabularyData& data) {
  check_data(data);
  if (data.model == "gpt2") return std::make_unique<ByteLevelBpe>(data);
  fail<InputError>("{}: tokenizer.ggml.model: expected gpt2 (byte-level BPE), found {}", data.source,
                   quoted(data.model));
}

AddedTokens make_added_tokens(const VocabularyData& data, bool with_control) {
  std::vector<AddedTokens::Entry> entries;
  for (std::size_t i = 0; i < data.types.size(); ++i) {
    const TokenType type = data.types[i];
    const bool is_control = type == TokenType::control || type == TokenType::unknown;
    // Texts are well-formed UTF-8; a token that is not could only be found across the middle of a character.
    const bool can_occur = is_valid_utf8(data.tokens[i]);
    if (can_occur && (type == TokenType::user_defined || (is_control && with_control))) {
      entries.push_back({data.tokens[i], static_cast<TokenId>(i)});
    }
  }
  return AddedTokens(entries);
}

}  // namespace

Tokenizer::Tokenizer(const VocabularyData& data)
    : model_(make_model(data)),
      types_(data.types),
      user_defined_(make_added_tokens(data, false)),
      user_defined_and_control_(make_added_tokens(data, true)),
      bos_(data.bos),
      eos_(data.eos),
      eot_(data.eot) {
  types_.resize(data.tokens.size(), TokenType::normal);
  if (data.add_bos.value_or(false) && !bos_) {
    fail<InputError>("{}: tokenizer.ggml.add_bos_token: expected tokenizer.ggml.bos_token_id with it, found none",
                     data.source);
  }
  if (data.add_eos.value_or(false) && !eos_) {
    fail<InputError>("{}: tokenizer.ggml.add_eos_token: expected tokenizer.ggml.eos_token_id with it, found none",
                     data.source);
  }
  add_bos_ = data.add_bos.value_or(model_->adds_bos()) && bos_;
  add_eos_ = data.add_eos.value_or(false);
  for (const auto& id : {data.eos, data.eot, data.eom}) {
    if (id) end_of_generation_.push_back(*id);
  }
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    if (types_[i] == TokenType::control && std::ranges::count(kEndOfGenerationNames, data.tokens[i]) != 0) {
      end_of_generation_.push_back(static_cast<TokenId>(i));
    }
  }
  std::ranges::sort(end_of_generation_);
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = repair_utf8(text);
    text = repaired;
  }
  std::vector<TokenId> ids;
  if (options.add_special && add_bos_) ids.push_back(*bos_);
  std::size_t at = 0;
  for (const AddedTokens::Match& match :
       (options.parse_special ? user_defined_and_control_ : user_defined_).find(text)) {
    model_->encode(text.substr(at, match.begin - at), ids);
    ids.push_back(match.id);
    at = match.begin + match.size;
  }
  model_->encode(text.substr(at), ids);
  if (options.add_special && add_eos_) ids.push_back(*eos_);
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_control) const {
  std::string bytes;
  for (const TokenId id : ids) {
    if (!(skip_control && is_control(id))) bytes += token_bytes(id);
  }
  return repair_utf8(bytes);
}

void Tokenizer::check_id(TokenId id) const {
  if (id < 0 || static_cast<std::size_t>(id) >= types_.size()) {
    fail<InputError>("token id: expected 0 to {}, found {}", types_.size() - 1, id);
  }
}

std::string_view Tokenizer::token_bytes(TokenId id) const {
  check_id(id);
  return model_->bytes(id);
}

TokenType Tokenizer::type(TokenId id) const {
  check_id(id);
  return types_[id];
}

bool Tokenizer::is_control(TokenId id) const { return type(id) == TokenType::control; }

bool Tokenizer::is_end_of_generation(TokenId id) const noexcept {
  return std::ranges::binary_search(end_of_generation_, id);
}

std::string StreamingDecoder::push(TokenId id) {
  if (skip_control_ && tokenizer_->is_control(id)) return {};
  return stream_.push(tokenizer_->token_bytes(id));
}

}  // namespace headrace::text
