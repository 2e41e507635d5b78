// Finds tokens that stand literally in a text, such as "<|im_end|>", as leftmost-longest matches, before any other step
// of tokenization sees the text. This is how `tokenizers` treats added tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/hash.hpp"
#include "text/vocabulary.hpp"

namespace headrace::text {

/// An Aho-Corasick automaton over the reversed tokens, run from the end of the text to its start: at every position it
/// knows the longest token that starts there, so leftmost-longest needs no backtracking. Linear in the text, whatever
/// the tokens are.
class AddedTokens {
 public:
  struct Entry {
    std::string_view content;
    TokenId id;
  };
  struct Match {
    std::size_t begin;
    std::size_t size;
    TokenId id;
  };

  /// Entries without content are ignored; of equal ones the first counts. The contents are not kept. Throws
  /// InputError beyond 16 MB of contents.
  explicit AddedTokens(const std::vector<Entry>& entries = {});

  /// The matches in `text`, in order, none overlapping.
  [[nodiscard]] std::vector<Match> find(std::string_view text) const;

 private:
  using Node = std::uint32_t;
  struct State {
    Node fallback = 0;     ///< the state of the longest proper suffix that is in the trie
    TokenId id = -1;       ///< the longest token that this state ends in, or -1
    std::size_t size = 0;  ///< its length in bytes
  };
  [[nodiscard]] Node step(Node node, unsigned char byte) const noexcept;

  std::vector<State> states_;  ///< [0] is the root
  IntegerMap<Node> children_;  ///< by node << 8 | byte
  std::vector<Node> root_;     ///< the root's children by byte, 0 where there is none
};

}  // namespace headrace::text
