// SentencePiece's BPE; see sentencepiece_bpe.hpp.
#include "text/sentencepiece_bpe.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/error.hpp"
#include "base/quote.hpp"
#include "text/utf8.hpp"

namespace headrace::text {

namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581, LOWER ONE EIGHTH BLOCK
/// Of a character without a token; no id, and not that of a symbol which was merged away.
constexpr TokenId kNoToken = -2;

/// `text` with `from` as `to`.
std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t found = std::min(text.find(from, at), text.size());
    out.append(text.substr(at, found - at));
    if (found < text.size()) out.append(to);
    at = found + from.size();
  }
  return out;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// The byte that "<0x1F>" stands for, or -1.
int parse_byte_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  const int high = hex_digit(token[3]);
  const int low = hex_digit(token[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

TokenType type_of(const VocabularyData& data, std::size_t id) {
  return data.types.empty() ? TokenType::normal : data.types[id];
}

}  // namespace

SentencePieceBpe::SentencePieceBpe(const VocabularyData& data)
    : prefix_(data.space_prefix),
      prefix_only_at_start_(data.prefix_only_at_start),
      spaces_behind_added_(data.spaces_behind_added),
      fuse_unknown_(data.fuse_unknown),
      unknown_(data.unknown.value_or(-1)),
      index_(data.tokens.size()),
      by_merges_(!data.merges.empty() || data.scores.empty()),
      merges_(data.merges.size()) {
  add_tokens(data);
  add_byte_tokens(data);
  if (by_merges_) {
    add_merges(data);
  } else {
    rank_scores(data);
  }
}

void SentencePieceBpe::add_tokens(const VocabularyData& data) {
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    const std::string& token = data.tokens[i];
    const TokenType type = type_of(data, i);
    piece_begins_.push_back(pieces_.size());
    bytes_begins_.push_back(bytes_.size());
    pieces_ += token;
    if (type == TokenType::byte) {
      const int byte = parse_byte_token(token);
      if (byte < 0) {
        fail<InputError>("{}: {}tokens[{}]: expected a byte token as <0x1F>, found {}", data.source, data.field_prefix,
                         i, quoted(token));
      }
      bytes_ += static_cast<char>(byte);
    } else if (type == TokenType::normal || type == TokenType::unused) {
      bytes_ += replace_all(token, kSpace, " ");
    } else if (i < data.added_flags.size() && data.added_flags[i].normalized) {
      // It stands for the normalized text that it is found in, the space before it included.
      std::string buffer;
      bytes_ += replace_all(normalize(token, /*at_start=*/true, buffer), kSpace, " ");
    } else {
      bytes_ += token;
    }
  }
  piece_begins_.push_back(pieces_.size());
  bytes_begins_.push_back(bytes_.size());
  // Control tokens never come out of text, whatever it merges to.
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    const TokenType type = type_of(data, i);
    if (data.tokens[i].empty() || (type != TokenType::normal && type != TokenType::unused)) continue;
    index_.insert(static_cast<TokenId>(i), [this](TokenId id) { return piece(id); });
    longest_ = std::max(longest_, data.tokens[i].size());
  }
}

void SentencePieceBpe::add_byte_tokens(const VocabularyData& data) {
  byte_ids_.fill(-1);
  for (std::size_t i = 0; i < data.tokens.size(); ++i) {
    if (type_of(data, i) != TokenType::byte) continue;
    TokenId& id = byte_ids_[static_cast<std::size_t>(parse_byte_token(data.tokens[i]))];
    if (id < 0) id = static_cast<TokenId>(i);
  }
}

void SentencePieceBpe::rank_scores(const VocabularyData& data) {
  if (data.scores.size() != data.tokens.size()) {
    fail<InputError>("{}: {}scores: expected {} scores, found {}", data.source, data.field_prefix, data.tokens.size(),
                     data.scores.size());
  }
  std::vector<float> scores = data.scores;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (std::isnan(scores[i])) {
      fail<InputError>("{}: {}scores[{}]: expected a number, found nan", data.source, data.field_prefix, i);
    }
  }
  std::ranges::sort(scores, std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  score_ranks_.reserve(data.scores.size());
  for (const float score : data.scores) {
    const auto place = std::ranges::lower_bound(scores, score, std::greater<>());
    score_ranks_.push_back(static_cast<std::uint32_t>(place - scores.begin()));
  }
}

void SentencePieceBpe::add_merges(const VocabularyData& data) {
  if (data.merges.size() > std::numeric_limits<std::uint32_t>::max()) {
    fail<InputError>("{}: {}merges: expected fewer than 2^32, found {}", data.source, data.field_prefix,
                     data.merges.size());
  }
  // A merge may name any token, byte tokens too.
  StringIndex all(data.tokens.size());
  const auto text = [this](TokenId id) { return piece(id); };
  for (std::size_t i = 0; i < data.tokens.size(); ++i) all.insert(static_cast<TokenId>(i), text);
  for (std::size_t rank = 0; rank < data.merges.size(); ++rank) {
    const std::string_view merge = data.merges[rank];
    const std::size_t space = merge.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == merge.size() ||
        merge.find(' ', space + 1) != std::string_view::npos) {
      fail<InputError>("{}: {}merges[{}]: expected two tokens with a space between, found {}", data.source,
                       data.field_prefix, rank, quoted(merge));
    }
    const std::string_view left = merge.substr(0, space);
    const std::string_view right = merge.substr(space + 1);
    const TokenId left_id = all.find(left, text);
    const TokenId right_id = all.find(right, text);
    const TokenId result = all.find(std::string(left).append(right), text);
    if (left_id < 0 || right_id < 0 || result < 0) {
      fail<InputError>("{}: {}merges[{}]: expected both parts and the result to be tokens, found {}", data.source,
                       data.field_prefix, rank, quoted(merge));
    }
    merges_.insert(bpe_pair_key(left_id, right_id), {static_cast<std::uint32_t>(rank), result});
  }
}

std::string_view SentencePieceBpe::piece(TokenId id) const noexcept {
  const auto i = static_cast<std::size_t>(id);
  return std::string_view(pieces_).substr(piece_begins_[i], piece_begins_[i + 1] - piece_begins_[i]);
}

std::string_view SentencePieceBpe::bytes(TokenId id) const noexcept {
  const auto i = static_cast<std::size_t>(id);
  return std::string_view(bytes_).substr(bytes_begins_[i], bytes_begins_[i + 1] - bytes_begins_[i]);
}

TokenId SentencePieceBpe::find(std::string_view text) const noexcept {
  if (text.size() > longest_) return -1;
  return index_.find(text, [this](TokenId id) { return piece(id); });
}

std::string_view SentencePieceBpe::escape(std::string_view text, bool at_start, std::string& buffer) const {
  if (text.empty()) return text;
  const bool may_prefix = prefix_ != SpacePrefix::never && (at_start || !prefix_only_at_start_);
  std::string escaped = replace_all(text, " ", kSpace);
  if (may_prefix && !(prefix_ == SpacePrefix::unless_space && escaped.starts_with(kSpace))) {
    escaped.insert(0, kSpace);
  }
  buffer = std::move(escaped);
  return buffer;
}

std::string_view SentencePieceBpe::normalize(std::string_view text, bool at_start, std::string& buffer) const {
  return spaces_behind_added_ ? text : escape(text, at_start, buffer);
}

void SentencePieceBpe::encode(std::string_view normalized, bool at_start, std::vector<TokenId>& out) const {
  std::string buffer;
  encode_escaped(spaces_behind_added_ ? escape(normalized, at_start, buffer) : normalized, out);
}

bool SentencePieceBpe::has_bytes(std::string_view character) const noexcept {
  return std::ranges::all_of(character, [&](char c) { return byte_ids_[static_cast<unsigned char>(c)] >= 0; });
}

std::uint64_t SentencePieceBpe::encode_escaped(std::string_view text, std::vector<TokenId>& out) const {
  if (text.size() >= std::size_t{std::numeric_limits<std::int32_t>::max()}) {
    fail<InputError>("text: expected stretches below 2 GB between special tokens, found one of {} bytes", text.size());
  }
  BpeWord word;
  std::vector<std::int32_t> begins;  // in bytes, by position
  const auto add = [&](TokenId id, std::size_t begin) {
    word.add(id);
    begins.push_back(static_cast<std::int32_t>(begin));
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = next_utf8_unit(text.substr(at)).size;
    const std::string_view character = text.substr(at, size);
    const TokenId id = find(character);
    if (id < 0 && by_merges_ && has_bytes(character)) {
      // Merges may name byte tokens, so that they are symbols; scores know only text.
      for (std::size_t i = 0; i < size; ++i) add(byte_ids_[static_cast<unsigned char>(character[i])], at + i);
    } else {
      add(id < 0 ? kNoToken : id, at);
    }
    at += size;
  }
  const auto end_of = [&](std::int32_t position) {
    const std::int32_t next = word[position].next;
    return next < 0 ? text.size() : static_cast<std::size_t>(begins[next]);
  };
  const auto text_of = [&](std::int32_t from, std::int32_t to) {
    const auto begin = static_cast<std::size_t>(begins[from]);
    return text.substr(begin, end_of(to) - begin);
  };
  const std::uint64_t looked_at = word.merge([&](std::int32_t left) -> std::optional<BpeMerge> {
    const std::int32_t right = word[left].next;
    if (by_merges_) {
      const BpeMerge* merge = merges_.find(bpe_pair_key(word[left].id, word[right].id));
      return merge == nullptr ? std::nullopt : std::optional(*merge);
    }
    const TokenId id = find(text_of(left, right));
    return id < 0 ? std::nullopt : std::optional(BpeMerge{score_ranks_[id], id});
  });
  bool follows_unknown = false;
  word.for_each([&](std::int32_t i) {
    const TokenId id = word[i].id;
    const std::string_view symbol = text_of(i, i);
    if (id >= 0) {
      out.push_back(id);
    } else if (has_bytes(symbol)) {
      for (const char c : symbol) out.push_back(byte_ids_[static_cast<unsigned char>(c)]);
    } else {
      if (unknown_ >= 0 && !(follows_unknown && fuse_unknown_)) out.push_back(unknown_);
      follows_unknown = true;
      return;
    }
    follows_unknown = false;
  });
  return looked_at;
}

}  // namespace headrace::text
