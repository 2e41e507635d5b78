// SentencePiece's BPE: no words, spaces as "\u2581", characters as first symbols, merges of neighbours by the score of
// what they become (Kudo and Richardson 2018; the files of Llama 1 and 2) or by a list of merges (the same vocabularies
// as tokenizer.json). What has no token is spelled in byte tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe_merge.hpp"
#include "text/hash.hpp"
#include "text/tokenizer_model.hpp"

namespace headrace::text {

class SentencePieceBpe final : public TokenizerModel {
 public:
  /// `data` with `types` empty or as long as `tokens`. It is not kept. Throws InputError if there are neither scores
  /// nor merges, a score is no number, a byte token is not written "<0x1F>", or a merge is ill-formed or names a token
  /// that is not there.
  explicit SentencePieceBpe(const VocabularyData& data);

  [[nodiscard]] std::string_view normalize(std::string_view text, bool at_start, std::string& buffer) const override;
  /// Time is n log n in the length of the text, for tokens of bounded length. Throws InputError beyond 2 GB.
  void encode(std::string_view normalized, bool at_start, std::vector<TokenId>& out) const override;
  [[nodiscard]] std::string_view bytes(TokenId id) const noexcept override;
  [[nodiscard]] bool adds_bos() const noexcept override { return true; }

  /// The same as encode, of text whose spaces are "\u2581". Returns how many merge candidates it looked at: at most 3 a
  /// character; each costs the logarithm of their number.
  std::uint64_t encode_escaped(std::string_view text, std::vector<TokenId>& out) const;

 private:
  void add_tokens(const VocabularyData& data);
  void add_byte_tokens(const VocabularyData& data);
  void rank_scores(const VocabularyData& data);
  void add_merges(const VocabularyData& data);
  [[nodiscard]] std::string_view escape(std::string_view text, bool at_start, std::string& buffer) const;
  [[nodiscard]] std::string_view piece(TokenId id) const noexcept;
  [[nodiscard]] TokenId find(std::string_view text) const noexcept;
  [[nodiscard]] bool has_bytes(std::string_view character) const noexcept;

  SpacePrefix prefix_;
  bool prefix_only_at_start_;
  bool spaces_behind_added_;
  bool fuse_unknown_;
  TokenId unknown_;                         ///< or -1
  std::string pieces_;                      ///< of all tokens as the vocabulary has them, one after the other
  std::vector<std::size_t> piece_begins_;   ///< by id, and the end of the last
  std::string bytes_;                       ///< what they stand for
  std::vector<std::size_t> bytes_begins_;   ///< by id, and the end of the last
  std::size_t longest_ = 0;                 ///< bytes of the longest piece in the index
  StringIndex index_;                       ///< of the pieces that text can become
  bool by_merges_;                          ///< by a list, not by scores
  std::vector<std::uint32_t> score_ranks_;  ///< by id; the highest score has the smallest
  IntegerMap<BpeMerge> merges_;             ///< by bpe_pair_key
  std::array<TokenId, 256> byte_ids_{};
};

}  // namespace headrace::text
