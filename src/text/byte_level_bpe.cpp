// Byte-level BPE; see byte_level_bpe.hpp.
#include "text/byte_level_bpe.hpp"

#include <algorithm>
#include <limits>

#include "base/error.hpp"
#include "base/quote.hpp"
#include "text/byte_alphabet.hpp"
#include "text/normalization.hpp"

namespace headrace::text {

namespace {

/// The rule that the vocabulary names, or spells out.
PreTokenizerRule rule_of(const VocabularyData& data) {
  if (!data.word_patterns) return find_pre_tokenizer_rule(data.pre_tokenizer, data.source);
  PreTokenizerRule rule;
  rule.normalize_nfc = data.normalize_nfc;
  rule.ignore_merges = data.ignore_merges;
  for (const std::string& source : *data.word_patterns) {
    const auto unused = std::ranges::find(rule.patterns, std::string_view());
    if (unused == std::end(rule.patterns)) {
      fail<InputError>("{}: pre_tokenizer: expected at most {} regular expressions, found {}", data.source,
                       std::size(rule.patterns), data.word_patterns->size());
    }
    *unused = find_word_pattern(source, data.source);
  }
  return rule;
}

}  // namespace

ByteLevelBpe::ByteLevelBpe(const VocabularyData& data)
    : rule_(rule_of(data)),
      pre_tokenizer_(rule_),
      add_space_prefix_(data.space_prefix != SpacePrefix::never),
      prefix_only_at_start_(data.prefix_only_at_start),
      index_(data.tokens.size()),
      merges_(data.merges.size()) {
  add_tokens(data);
  add_merges(data);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    byte_ids_[byte] = find(std::string_view(&c, 1));
  }
}

void ByteLevelBpe::add_tokens(const VocabularyData& data) {
  begins_.reserve(data.tokens.size() + 1);
  is_normal_.reserve(data.tokens.size());
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    const bool is_normal = data.types.empty() || data.types[i] == TokenType::normal;
    begins_.push_back(bytes_.size());
    // A normal token outside the alphabet is taken literally, as ByteLevel's decoder does.
    if (!is_normal || !append_bytes_of_printable(bytes_, data.tokens[i])) {
      // A normalized added token stands for the normalized text that it is found in.
      const bool is_normalized = i < data.added_flags.size() && data.added_flags[i].normalized;
      std::string buffer;
      bytes_ += is_normalized ? normalize(data.tokens[i], /*at_start=*/true, buffer) : data.tokens[i];
    }
    is_normal_.push_back(is_normal);
  }
  begins_.push_back(bytes_.size());
  // Normal tokens first, since of equal ones the first counts.
  const auto text = [this](TokenId id) { return bytes(id); };
  for (const bool normal : {true, false}) {
    for (std::size_t i = 0; i < data.tokens.size(); ++i) {
      if (is_normal_[i] == normal) index_.insert(static_cast<TokenId>(i), text);
    }
  }
}

void ByteLevelBpe::add_merges(const VocabularyData& data) {
  if (data.merges.size() > std::numeric_limits<std::uint32_t>::max()) {
    fail<InputError>("{}: {}merges: expected fewer than 2^32, found {}", data.source, data.field_prefix,
                     data.merges.size());
  }
  std::string pair;
  for (std::size_t rank = 0; rank < data.merges.size(); ++rank) {
    const std::string_view merge = data.merges[rank];
    const std::size_t space = merge.find(' ');
    pair.clear();
    std::size_t left_size = 0;
    bool is_pair = space != std::string_view::npos && append_bytes_of_printable(pair, merge.substr(0, space));
    left_size = pair.size();
    is_pair = is_pair && append_bytes_of_printable(pair, merge.substr(space + 1));
    if (!is_pair || left_size == 0 || left_size == pair.size()) {
      fail<InputError>("{}: {}merges[{}]: expected two tokens with a space between, found {}", data.source,
                       data.field_prefix, rank, quoted(merge));
    }
    const TokenId left = find(std::string_view(pair).substr(0, left_size));
    const TokenId right = find(std::string_view(pair).substr(left_size));
    const TokenId result = find(pair);
    if (left < 0 || right < 0 || result < 0) {
      fail<InputError>("{}: {}merges[{}]: expected both parts and the result to be tokens, found {}", data.source,
                       data.field_prefix, rank, quoted(merge));
    }
    merges_.insert(bpe_pair_key(left, right), {static_cast<std::uint32_t>(rank), result});
  }
}

std::string_view ByteLevelBpe::bytes(TokenId id) const noexcept {
  const auto i = static_cast<std::size_t>(id);
  return std::string_view(bytes_).substr(begins_[i], begins_[i + 1] - begins_[i]);
}

TokenId ByteLevelBpe::find(std::string_view key) const noexcept {
  return index_.find(key, [this](TokenId id) { return bytes(id); });
}

std::string_view ByteLevelBpe::normalize(std::string_view text, bool /*at_start*/, std::string& buffer) const {
  if (!rule_.normalize_nfc || is_trivially_nfc(text)) return text;
  buffer = to_nfc(text);
  return buffer;
}

void ByteLevelBpe::encode(std::string_view text, bool at_start, std::vector<TokenId>& out) const {
  std::string prefixed;
  if (add_space_prefix_ && (at_start || !prefix_only_at_start_) && !text.empty() && text.front() != ' ') {
    prefixed = ' ' + std::string(text);
    text = prefixed;
  }
  BpeWord scratch;
  for (const std::string_view word : pre_tokenizer_.split(text)) encode_word(word, out, scratch);
}

std::uint64_t ByteLevelBpe::encode_word(std::string_view word, std::vector<TokenId>& out) const {
  BpeWord scratch;
  return encode_word(word, out, scratch);
}

std::uint64_t ByteLevelBpe::encode_word(std::string_view word, std::vector<TokenId>& out, BpeWord& scratch) const {
  if (word.size() >= std::size_t{std::numeric_limits<std::int32_t>::max()}) {
    fail<InputError>("text: expected words below 2 GB, found one of {} bytes", word.size());
  }
  if (rule_.ignore_merges) {
    const TokenId id = find(word);
    if (id >= 0 && is_normal_[id]) {
      out.push_back(id);
      return 0;
    }
  }
  scratch.clear();
  for (const char c : word) {
    const TokenId id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0) scratch.add(id);
  }
  const std::uint64_t looked_at = scratch.merge([&](std::int32_t left) -> std::optional<BpeMerge> {
    const BpeMerge* merge = merges_.find(bpe_pair_key(scratch[left].id, scratch[scratch[left].next].id));
    return merge == nullptr ? std::nullopt : std::optional(*merge);
  });
  scratch.for_each([&](std::int32_t i) { out.push_back(scratch[i].id); });
  return looked_at;
}

}  // namespace headrace::text
