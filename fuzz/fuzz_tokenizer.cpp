// Any vocabulary and any text: nothing but InputError may come out, and what was encoded decodes to the text.
// Input: a byte of options, then records that the byte FE separates. The first byte of a record says what it is: n c u
// a normal, control, user-defined token; M a merge whose result becomes a token; m a merge as it is; all others are
// text.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "../tests/text/made_vocabulary.hpp"
#include "base/error.hpp"
#include "text/normalization.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/tokenizer.hpp"

namespace {

using namespace headrace::text;

void check(bool holds) {
  if (!holds) std::abort();
}

void check_text(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options,
                const std::string& expected) {
  const std::vector<TokenId> ids = tokenizer.encode(text, options);
  const std::string decoded = tokenizer.decode(ids, false);
  check(decoded == expected);
  StreamingDecoder decoder(tokenizer, false);
  std::string streamed;
  for (const TokenId id : ids) {
    const std::string piece = decoder.push(id);
    check(is_valid_utf8(piece));
    streamed += piece;
  }
  check(streamed + decoder.flush() == decoded);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t options = data[0];
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  VocabularyData vocabulary = made_vocabulary({});
  const auto rules = pre_tokenizer_rules();
  const PreTokenizerRule& rule = rules[options % rules.size()];
  vocabulary.pre_tokenizer = rule.name;
  std::vector<std::string_view> texts;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\xFE'), rest.size());
    const std::string_view record = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (record.empty()) continue;
    const std::string content(record.substr(1));
    if (record[0] == 'n') {
      add_token(vocabulary, content, TokenType::normal);
    } else if (record[0] == 'c') {
      add_token(vocabulary, content, TokenType::control);
    } else if (record[0] == 'u') {
      add_token(vocabulary, content, TokenType::user_defined);
    } else if (record[0] == 'm' || record[0] == 'M') {
      vocabulary.merges.push_back(content);
      std::string result = content;
      if (const std::size_t space = result.find(' '); space != std::string::npos) result.erase(space, 1);
      if (record[0] == 'M') add_token(vocabulary, result, TokenType::normal);
    } else {
      texts.push_back(record);
    }
  }
  try {
    const Tokenizer tokenizer(vocabulary);
    for (const std::string_view text : texts) {
      const std::string repaired = repair_utf8(text);
      for (const bool parse_special : {false, true}) {
        EncodeOptions encode_options;
        encode_options.parse_special = parse_special;
        // Form C stops at special tokens, so the text comes back as it was only where there are none.
        if (rule.normalize_nfc && !is_trivially_nfc(repaired)) {
          (void)tokenizer.encode(text, encode_options);
        } else {
          check_text(tokenizer, text, encode_options, repaired);
        }
      }
    }
  } catch (const headrace::InputError&) {
  }
  return 0;
}
