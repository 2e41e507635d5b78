// A tiny byte-level vocabulary for tests: all 256 bytes, then what a test adds.
#pragma once

#include <string>
#include <vector>

#include "text/byte_alphabet.hpp"
#include "text/utf8.hpp"
#include "text/vocabulary.hpp"

namespace headrace::text {

/// Ids 0 to 255 are the bytes of the same numbers; then the results of `merges`, in order.
inline VocabularyData made_vocabulary(const std::vector<std::string>& merges) {
  VocabularyData data;
  data.source = "made";
  data.model = "gpt2";
  data.pre_tokenizer = "gpt-2";
  data.tokens.resize(256);
  for (char32_t c = 0; c < 0x200; ++c) {
    if (const auto byte = byte_of_printable(c)) append_code_point(data.tokens[*byte], c);
  }
  for (const std::string& merge : merges) {
    std::string token = merge;
    token.erase(token.find(' '), 1);
    data.tokens.push_back(token);
  }
  data.merges = merges;
  data.types.assign(data.tokens.size(), TokenType::normal);
  return data;
}

inline TokenId add_token(VocabularyData& data, std::string text, TokenType type) {
  data.tokens.push_back(std::move(text));
  data.types.push_back(type);
  return static_cast<TokenId>(data.tokens.size() - 1);
}

}  // namespace headrace::text
