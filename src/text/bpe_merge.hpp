// The loop that every BPE shares: of all pairs of neighbours that may be merged, the one of the smallest rank, leftmost
// first, until none is left. (Sennrich et al. 2016.)
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "text/vocabulary.hpp"

namespace headrace::text {

struct BpeMerge {
  std::uint32_t rank = 0;  ///< the smallest is merged first
  TokenId result = -1;
};

/// The key of a pair in a table of merges.
inline std::uint64_t bpe_pair_key(TokenId left, TokenId right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

/// The symbols of a word as a list. Kept over the words of a text, to allocate once.
class BpeWord {
 public:
  struct Symbol {
    TokenId id;
    std::int32_t previous, next;  ///< positions, or -1
  };

  void clear() { symbols_.clear(); }
  /// Appends a symbol; fewer than 2^31 in all. Ids below 0 are allowed, but for -1.
  void add(TokenId id) {
    const auto position = static_cast<std::int32_t>(symbols_.size());
    if (!symbols_.empty()) symbols_.back().next = position;
    symbols_.push_back({id, position - 1, -1});
  }
  [[nodiscard]] bool empty() const noexcept { return symbols_.empty(); }
  [[nodiscard]] const Symbol& operator[](std::int32_t position) const { return symbols_[position]; }

  /// Merges until nothing can be. `find(left)` is the merge of the symbols at the positions `left` and its next one, if
  /// there is any. Returns how many candidates it looked at: at most 3 a symbol; each costs the logarithm of their
  /// number.
  template <class Find>
  std::uint64_t merge(const Find& find);

  /// Calls use(position) for each symbol that is left.
  template <class Use>
  void for_each(const Use& use) const {
    for (std::int32_t i = symbols_.empty() ? -1 : 0; i >= 0; i = symbols_[i].next) use(i);
  }

 private:
  static constexpr TokenId merged_away = -1;

  /// Two neighbours that may be merged. Stale once either has changed.
  struct Candidate {
    std::uint32_t rank;
    std::int32_t position;  ///< of the left one
    TokenId left, right, result;
  };

  /// The smallest rank is on top of the heap, of equal ones the leftmost.
  static bool comes_later(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;
};

template <class Find>
std::uint64_t BpeWord::merge(const Find& find) {
  const auto add_candidate = [&](std::int32_t left) {
    if (left < 0 || symbols_[left].next < 0) return false;
    const std::optional<BpeMerge> merge = find(left);
    if (!merge) return false;
    candidates_.push_back({merge->rank, left, symbols_[left].id, symbols_[symbols_[left].next].id, merge->result});
    return true;
  };
  const auto push = [&](std::int32_t left) {
    if (add_candidate(left)) std::push_heap(candidates_.begin(), candidates_.end(), comes_later);
  };
  candidates_.clear();
  for (std::size_t i = 0; i < symbols_.size(); ++i) add_candidate(static_cast<std::int32_t>(i));
  std::make_heap(candidates_.begin(), candidates_.end(), comes_later);
  std::uint64_t looked_at = 0;
  while (!candidates_.empty()) {
    ++looked_at;
    std::pop_heap(candidates_.begin(), candidates_.end(), comes_later);
    const Candidate top = candidates_.back();
    candidates_.pop_back();
    Symbol& left = symbols_[top.position];
    if (left.id != top.left || left.next < 0 || symbols_[left.next].id != top.right) continue;
    Symbol& right = symbols_[left.next];
    left.id = top.result;
    left.next = right.next;
    right.id = merged_away;
    if (left.next >= 0) symbols_[left.next].previous = top.position;
    push(left.previous);
    push(top.position);
  }
  return looked_at;
}

}  // namespace headrace::text
