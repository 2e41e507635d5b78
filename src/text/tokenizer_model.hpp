// What each tokenization algorithm provides: ids for a stretch of plain text, and bytes for an id. Special tokens, BOS,
// EOS and decoding are common to all and live in Tokenizer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.hpp"

namespace headrace::text {

class TokenizerModel {
 public:
  TokenizerModel() = default;
  TokenizerModel(const TokenizerModel&) = delete;
  TokenizerModel& operator=(const TokenizerModel&) = delete;
  virtual ~TokenizerModel() = default;

  /// What encode takes, of a stretch of plain text (valid UTF-8); `buffer` may hold it. `at_start`: of the text.
  [[nodiscard]] virtual std::string_view normalize(std::string_view text, bool at_start, std::string& buffer) const = 0;
  /// Appends the ids of normalized text in which no special token is looked for. Threads may call it together.
  virtual void encode(std::string_view normalized, bool at_start, std::vector<TokenId>& out) const = 0;
  /// The bytes that the token, 0 <= id < size of the vocabulary, stands for.
  [[nodiscard]] virtual std::string_view bytes(TokenId id) const noexcept = 0;
  /// What encoding does if the vocabulary does not say.
  [[nodiscard]] virtual bool adds_bos() const noexcept = 0;
};

}  // namespace headrace::text
