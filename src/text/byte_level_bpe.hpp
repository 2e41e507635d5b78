// Byte-level BPE: words from a PreTokenizer, their bytes as first symbols, and merges of neighbours by rank. (Sennrich
// et al. 2016, Radford et al. 2019; equal to `tokenizers`' BPE with ByteLevel.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe_merge.hpp"
#include "text/hash.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/tokenizer_model.hpp"

namespace headrace::text {

class ByteLevelBpe final : public TokenizerModel {
 public:
  /// `data` with `types` empty or as long as `tokens`. It is not kept. Throws InputError if the pre-tokenizer is
  /// unknown, or if a merge is ill-formed or names a token that is not there.
  explicit ByteLevelBpe(const VocabularyData& data);

  [[nodiscard]] std::string_view normalize(std::string_view text, bool at_start, std::string& buffer) const override;
  void encode(std::string_view text, bool at_start, std::vector<TokenId>& out) const override;
  [[nodiscard]] std::string_view bytes(TokenId id) const noexcept override;
  [[nodiscard]] bool adds_bos() const noexcept override { return rule_.add_bos; }

  /// Appends the ids of one word. Returns how many merge candidates it looked at: at most 3 a byte; each costs the
  /// logarithm of their number. A byte that has no token is left out, as in `tokenizers`. Throws InputError beyond 2
  /// GB.
  std::uint64_t encode_word(std::string_view word, std::vector<TokenId>& out) const;

 private:
  std::uint64_t encode_word(std::string_view word, std::vector<TokenId>& out, BpeWord& scratch) const;
  void add_tokens(const VocabularyData& data);
  void add_merges(const VocabularyData& data);
  [[nodiscard]] TokenId find(std::string_view bytes) const noexcept;

  PreTokenizerRule rule_;
  PreTokenizer pre_tokenizer_;
  bool add_space_prefix_;
  bool prefix_only_at_start_;
  std::string bytes_;                ///< of all tokens, one after the other
  std::vector<std::size_t> begins_;  ///< by id, and the end of the last
  std::vector<bool> is_normal_;      ///< by id
  StringIndex index_;                ///< by bytes
  IntegerMap<BpeMerge> merges_;      ///< by left << 32 | right
  std::array<TokenId, 256> byte_ids_{};
};

}  // namespace headrace::text
