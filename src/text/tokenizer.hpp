// Text to token ids and back, for any vocabulary: special tokens, BOS and EOS around one TokenizerModel.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.hpp"
#include "text/tokenizer_model.hpp"
#include "text/utf8.hpp"
#include "text/vocabulary.hpp"

namespace headrace::text {

struct EncodeOptions {
  /// BOS before and EOS behind, where the vocabulary says so.
  bool add_special = false;
  /// Control tokens that stand literally in the text become their ids. Only for text that may control the model, such
  /// as a rendered chat template. User-defined tokens are found either way.
  bool parse_special = false;
};

/// Immutable, so that threads may share it.
class Tokenizer {
 public:
  /// `data` is not kept. Throws InputError that names `data.source` and the field.
  explicit Tokenizer(const VocabularyData& data);

  /// The ids of `text`. Ill-formed UTF-8 is read as U+FFFD, one for each maximal subpart. Time is linear in the length
  /// of the text but for the logarithm of its longest word. Throws InputError if a word exceeds 2 GB.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options) const;

  /// The text of `ids`, with U+FFFD for what is no UTF-8, without the space that encode puts before a text. Throws
  /// InputError if an id is not in the vocabulary.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids, bool skip_control) const;

  /// The bytes of one token; for special tokens their literal text. They may be part of a character. Throws InputError
  /// if the id is not in the vocabulary.
  [[nodiscard]] std::string_view token_bytes(TokenId id) const;
  /// The type of one token. Throws InputError if the id is not in the vocabulary.
  [[nodiscard]] TokenType type(TokenId id) const;
  /// Whether the token controls the model and is no text to show.
  [[nodiscard]] bool is_control(TokenId id) const;
  /// Whether generation stops at this token: EOS, EOT, EOM, and control tokens that are known to end a turn by name,
  /// since many files name only one of them.
  [[nodiscard]] bool is_end_of_generation(TokenId id) const noexcept;

  [[nodiscard]] std::size_t vocabulary_size() const noexcept { return types_.size(); }
  [[nodiscard]] std::optional<TokenId> bos() const noexcept { return bos_; }
  [[nodiscard]] std::optional<TokenId> eos() const noexcept { return eos_; }
  /// The end of a turn, where it differs from EOS.
  [[nodiscard]] std::optional<TokenId> eot() const noexcept { return eot_; }
  [[nodiscard]] bool adds_bos() const noexcept { return add_bos_; }
  [[nodiscard]] bool adds_eos() const noexcept { return add_eos_; }
  /// Whether decode drops the space that its text begins with, since encode has put it there.
  [[nodiscard]] bool strips_leading_space() const noexcept { return strip_leading_space_; }

 private:
  /// What is looked for in a text: in it as it is, then in the normalized rest.
  struct Added {
    AddedTokens literal;
    AddedTokens normalized;
  };

  void check_id(TokenId id) const;
  [[nodiscard]] Added make_added(const VocabularyData& data, bool with_control) const;
  void encode_stretch(std::string_view text, bool at_start, const Added& added, std::vector<TokenId>& ids) const;
  /// Calls piece(text, begin) for what lies between the added tokens of `text`, and appends the ids of these.
  template <class Piece>
  void split(std::string_view text, const AddedTokens& added, std::vector<TokenId>& ids, const Piece& piece) const;

  std::unique_ptr<const TokenizerModel> model_;
  std::vector<TokenType> types_;              ///< by id
  std::vector<AddedTokenFlags> added_flags_;  ///< by id
  Added user_defined_;                        ///< what is looked for in every text
  Added user_defined_and_control_;            ///< and with parse_special
  std::optional<TokenId> bos_, eos_, eot_;
  std::vector<TokenId> end_of_generation_;  ///< sorted
  bool add_bos_ = false;
  bool add_eos_ = false;
  bool strip_leading_space_ = false;
};

/// Decodes ids as they are generated. What comes out is whole characters, and all of it together equals
/// Tokenizer::decode of all ids together.
class StreamingDecoder {
 public:
  /// `tokenizer` must outlive the decoder.
  explicit StreamingDecoder(const Tokenizer& tokenizer, bool skip_control)
      : tokenizer_(&tokenizer), skip_control_(skip_control) {}

  /// The characters that this token completes, perhaps none. Throws InputError if the id is not in the vocabulary.
  [[nodiscard]] std::string push(TokenId id);
  /// The end: U+FFFD if a character is incomplete.
  [[nodiscard]] std::string flush() { return stream_.flush(); }

 private:
  const Tokenizer* tokenizer_;
  bool skip_control_;
  bool at_start_ = true;
  Utf8Stream stream_;
};

}  // namespace headrace::text
