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

std::uint64_t pair_key(TokenId left, TokenId right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

/// A neighbour in the list of a word's symbols.
struct Symbol {
  TokenId id;  ///< -1 once it is merged into its left neighbour
  std::int32_t previous, next;
};

/// Two neighbours that may be merged. Stale once either has changed.
struct Candidate {
  std::uint32_t rank;
  std::int32_t position;  ///< of the left one
  TokenId left, right;
};

/// The smallest rank is on top of the heap, of equal ones the leftmost.
bool comes_later(const Candidate& a, const Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

}  // namespace

/// Kept over the words of a text, to allocate once.
struct ByteLevelBpe::Scratch {
  std::vector<Symbol> symbols;
  std::vector<Candidate> candidates;
};

ByteLevelBpe::ByteLevelBpe(const VocabularyData& data)
    : rule_(find_pre_tokenizer_rule(data.pre_tokenizer, data.source)),
      pre_tokenizer_(rule_),
      add_space_prefix_(data.add_space_prefix),
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
    if (!is_normal || !append_bytes_of_printable(bytes_, data.tokens[i])) bytes_.append(data.tokens[i]);
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
    fail<InputError>("{}: tokenizer.ggml.merges: expected fewer than 2^32, found {}", data.source, data.merges.size());
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
      fail<InputError>("{}: tokenizer.ggml.merges[{}]: expected two tokens with a space between, found {}", data.source,
                       rank, quoted(merge));
    }
    const TokenId left = find(std::string_view(pair).substr(0, left_size));
    const TokenId right = find(std::string_view(pair).substr(left_size));
    const TokenId result = find(pair);
    if (left < 0 || right < 0 || result < 0) {
      fail<InputError>("{}: tokenizer.ggml.merges[{}]: expected both parts and the result to be tokens, found {}",
                       data.source, rank, quoted(merge));
    }
    merges_.insert(pair_key(left, right), {static_cast<std::uint32_t>(rank), result});
  }
}

std::string_view ByteLevelBpe::bytes(TokenId id) const noexcept {
  const auto i = static_cast<std::size_t>(id);
  return std::string_view(bytes_).substr(begins_[i], begins_[i + 1] - begins_[i]);
}

TokenId ByteLevelBpe::find(std::string_view key) const noexcept {
  return index_.find(key, [this](TokenId id) { return bytes(id); });
}

void ByteLevelBpe::encode(std::string_view text, std::vector<TokenId>& out) const {
  std::string changed;
  if (rule_.normalize_nfc && !is_trivially_nfc(text)) {
    changed = to_nfc(text);
    text = changed;
  }
  if (add_space_prefix_ && !text.empty() && text.front() != ' ') {
    changed = ' ' + std::string(text);
    text = changed;
  }
  Scratch scratch;
  for (const std::string_view word : pre_tokenizer_.split(text)) encode_word(word, out, scratch);
}

std::uint64_t ByteLevelBpe::encode_word(std::string_view word, std::vector<TokenId>& out) const {
  Scratch scratch;
  return encode_word(word, out, scratch);
}

void ByteLevelBpe::add_candidate(std::int32_t left, Scratch& scratch) const {
  if (left < 0 || scratch.symbols[left].next < 0) return;
  const TokenId left_id = scratch.symbols[left].id;
  const TokenId right_id = scratch.symbols[scratch.symbols[left].next].id;
  const Merge* merge = merges_.find(pair_key(left_id, right_id));
  if (merge != nullptr) scratch.candidates.push_back({merge->rank, left, left_id, right_id});
}

std::uint64_t ByteLevelBpe::encode_word(std::string_view word, std::vector<TokenId>& out, Scratch& scratch) const {
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
  auto& symbols = scratch.symbols;
  auto& candidates = scratch.candidates;
  symbols.clear();
  for (const char c : word) {
    const TokenId id = byte_ids_[static_cast<unsigned char>(c)];
    const auto position = static_cast<std::int32_t>(symbols.size());
    if (id >= 0) symbols.push_back({id, position - 1, position + 1});
  }
  if (symbols.empty()) return 0;
  symbols.back().next = -1;

  candidates.clear();
  for (std::size_t i = 0; i < symbols.size(); ++i) add_candidate(static_cast<std::int32_t>(i), scratch);
  std::make_heap(candidates.begin(), candidates.end(), comes_later);
  const auto push = [&](std::int32_t left) {
    const std::size_t count = candidates.size();
    add_candidate(left, scratch);
    if (candidates.size() > count) std::push_heap(candidates.begin(), candidates.end(), comes_later);
  };
  std::uint64_t looked_at = 0;
  while (!candidates.empty()) {
    ++looked_at;
    std::pop_heap(candidates.begin(), candidates.end(), comes_later);
    const Candidate top = candidates.back();
    candidates.pop_back();
    Symbol& left = symbols[top.position];
    if (left.id != top.left || left.next < 0 || symbols[left.next].id != top.right) continue;
    Symbol& right = symbols[left.next];
    left.id = merges_.find(pair_key(top.left, top.right))->result;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) symbols[left.next].previous = top.position;
    push(left.previous);
    push(top.position);
  }
  for (std::int32_t i = 0; i >= 0; i = symbols[i].next) out.push_back(symbols[i].id);
  return looked_at;
}

}  // namespace headrace::text
