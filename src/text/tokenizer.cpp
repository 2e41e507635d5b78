// Special tokens around the model's ids; see tokenizer.hpp.
#include "text/tokenizer.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>

#include "base/error.hpp"
#include "base/quote.hpp"
#include "text/byte_level_bpe.hpp"
#include "text/sentencepiece_bpe.hpp"

namespace headrace::text {

namespace {

/// Control tokens that end a turn or a text in the models that have them.
constexpr std::array<std::string_view, 8> kEndOfGenerationNames = {
    "<|endoftext|>", "<|end_of_text|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "</s>"};

void check_data(const VocabularyData& data) {
  const std::size_t count = data.tokens.size();
  if (count == 0 || count > static_cast<std::size_t>(std::numeric_limits<TokenId>::max())) {
    fail<InputError>("{}: {}tokens: expected 1 to 2^31-1 tokens, found {}", data.source, data.field_prefix, count);
  }
  if (!data.types.empty() && data.types.size() != count) {
    fail<InputError>("{}: {}token_type: expected {} types, found {}", data.source, data.field_prefix, count,
                     data.types.size());
  }
  const auto check_id = [&](std::string_view name, std::optional<TokenId> id) {
    if (id && (*id < 0 || static_cast<std::size_t>(*id) >= count)) {
      fail<InputError>("{}: {}{}_token_id: expected an id below {}, found {}", data.source, data.field_prefix, name,
                       count, *id);
    }
  };
  check_id("bos", data.bos);
  check_id("eos", data.eos);
  check_id("eot", data.eot);
  check_id("eom", data.eom);
  check_id("unknown", data.unknown);
  check_id("padding", data.padding);
  for (const TokenId id : data.end_of_generation) check_id("eos", id);
}

std::unique_ptr<const TokenizerModel> make_model(const VocabularyData& data) {
  check_data(data);
  if (data.model == "gpt2") return std::make_unique<ByteLevelBpe>(data);
  if (data.model == "llama") return std::make_unique<SentencePieceBpe>(data);
  fail<InputError>("{}: {}model: expected gpt2 (byte-level BPE) or llama (SentencePiece's BPE), found {}", data.source,
                   data.field_prefix, quoted(data.model));
}

/// Unicode's White_Space, which is what lstrip and rstrip take.
bool is_white_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/// Bytes of white space at the end of `text` (valid UTF-8).
std::size_t white_space_at_end(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0) {
    std::size_t at = begin - 1;
    while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    std::size_t size = 0;
    if (!is_white_space(read_code_point(text.substr(at), size))) break;
    begin = at;
  }
  return text.size() - begin;
}

std::size_t white_space_at_start(std::string_view text) {
  std::size_t end = 0;
  while (end < text.size()) {
    std::size_t size = 0;
    if (!is_white_space(read_code_point(text.substr(end), size))) break;
    end += size;
  }
  return end;
}

}  // namespace

Tokenizer::Tokenizer(const VocabularyData& data)
    : model_(make_model(data)),
      types_(data.types),
      added_flags_(data.added_flags),
      user_defined_(make_added(data, false)),
      user_defined_and_control_(make_added(data, true)),
      bos_(data.bos),
      eos_(data.eos),
      eot_(data.eot),
      strip_leading_space_(data.strip_leading_space) {
  added_flags_.resize(data.tokens.size());
  types_.resize(data.tokens.size(), TokenType::normal);
  if (data.add_bos.value_or(false) && !bos_) {
    fail<InputError>("{0}: {1}add_bos_token: expected {1}bos_token_id with it, found none", data.source,
                     data.field_prefix);
  }
  if (data.add_eos.value_or(false) && !eos_) {
    fail<InputError>("{0}: {1}add_eos_token: expected {1}eos_token_id with it, found none", data.source,
                     data.field_prefix);
  }
  add_bos_ = data.add_bos.value_or(model_->adds_bos()) && bos_;
  add_eos_ = data.add_eos.value_or(false);
  for (const auto& id : {data.eos, data.eot, data.eom}) {
    if (id) end_of_generation_.push_back(*id);
  }
  end_of_generation_.insert(end_of_generation_.end(), data.end_of_generation.begin(), data.end_of_generation.end());
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    if (types_[i] == TokenType::control && std::ranges::count(kEndOfGenerationNames, data.tokens[i]) != 0) {
      end_of_generation_.push_back(static_cast<TokenId>(i));
    }
  }
  std::ranges::sort(end_of_generation_);
}

Tokenizer::Added Tokenizer::make_added(const VocabularyData& data, bool with_control) const {
  std::vector<AddedTokens::Entry> literal;
  std::vector<AddedTokens::Entry> normalized;
  std::deque<std::string> contents;  // of the normalized ones
  for (std::size_t i = 0; i < data.types.size(); ++i) {
    const TokenType type = data.types[i];
    const bool is_control = type == TokenType::control || type == TokenType::unknown;
    if (type != TokenType::user_defined && !(is_control && with_control)) continue;
    // Texts are well-formed UTF-8; a token that is not could only be found across the middle of a character.
    if (!is_valid_utf8(data.tokens[i])) continue;
    if (i < data.added_flags.size() && data.added_flags[i].normalized) {
      std::string buffer;
      contents.emplace_back(model_->normalize(data.tokens[i], /*at_start=*/true, buffer));
      normalized.push_back({contents.back(), static_cast<TokenId>(i)});
    } else {
      literal.push_back({data.tokens[i], static_cast<TokenId>(i)});
    }
  }
  return {AddedTokens(literal), AddedTokens(normalized)};
}

template <class Piece>
void Tokenizer::split(std::string_view text, const AddedTokens& added, std::vector<TokenId>& ids,
                      const Piece& piece) const {
  std::size_t at = 0;
  for (const AddedTokens::Match& match : added.find(text)) {
    const AddedTokenFlags& flags = added_flags_[match.id];
    std::size_t begin = match.begin;
    std::size_t end = match.begin + match.size;
    // What the token before has taken is no longer there to be stripped.
    if (flags.lstrip && begin > at) begin -= white_space_at_end(text.substr(at, begin - at));
    if (flags.rstrip) end += white_space_at_start(text.substr(end));
    if (begin > at) piece(text.substr(at, begin - at), at);
    ids.push_back(match.id);
    at = std::max(at, end);
  }
  if (at < text.size()) piece(text.substr(at), at);
}

void Tokenizer::encode_stretch(std::string_view text, bool at_start, const Added& added,
                               std::vector<TokenId>& ids) const {
  std::string buffer;
  const std::string_view normalized = model_->normalize(text, at_start, buffer);
  split(normalized, added.normalized, ids,
        [&](std::string_view piece, std::size_t begin) { model_->encode(piece, at_start && begin == 0, ids); });
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = repair_utf8(text);
    text = repaired;
  }
  const Added& added = options.parse_special ? user_defined_and_control_ : user_defined_;
  std::vector<TokenId> ids;
  if (options.add_special && add_bos_) ids.push_back(*bos_);
  split(text, added.literal, ids,
        [&](std::string_view piece, std::size_t begin) { encode_stretch(piece, begin == 0, added, ids); });
  if (options.add_special && add_eos_) ids.push_back(*eos_);
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_control) const {
  std::string bytes;
  for (const TokenId id : ids) {
    if (!(skip_control && is_control(id))) bytes += token_bytes(id);
  }
  if (strip_leading_space_ && bytes.starts_with(' ')) bytes.erase(0, 1);
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
  std::string_view bytes = tokenizer_->token_bytes(id);
  if (at_start_ && !bytes.empty()) {
    at_start_ = false;
    if (tokenizer_->strips_leading_space() && bytes.front() == ' ') bytes.remove_prefix(1);
  }
  return stream_.push(bytes);
}

}  // namespace headrace::text
