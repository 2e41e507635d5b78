// Any vocabulary and any text: nothing but InputError may come out, and what was encoded decodes to the text.
// Input: a byte of options, then records that the byte FE separates. The first byte of a record says what it is: n c u
// a normal, control, user-defined token; M a merge whose result becomes a token; m a merge as it is; all others are
// text. The options choose a pre-tokenizer, or SentencePiece's BPE by scores or merges, with or without byte tokens.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../tests/text/made_vocabulary.hpp"
#include "base/error.hpp"
#include "checks.hpp"
#include "text/normalization.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/tokenizer.hpp"

namespace {

using namespace headrace::text;
using headrace::fuzz::check;

void check_streamed(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, const std::string& decoded) {
  StreamingDecoder decoder(tokenizer, false);
  std::string streamed;
  for (const TokenId id : ids) {
    const std::string piece = decoder.push(id);
    check(is_valid_utf8(piece));
    streamed += piece;
  }
  check(streamed + decoder.flush() == decoded);
}

void check_text(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options,
                const std::string& expected) {
  const std::vector<TokenId> ids = tokenizer.encode(text, options);
  const std::string decoded = tokenizer.decode(ids, false);
  check(decoded == expected);
  check_streamed(tokenizer, ids, decoded);
}

/// Ids and decoding in pieces; the text need not come back, where spaces are put in and unknown characters fall out.
void check_ids(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options) {
  const std::vector<TokenId> ids = tokenizer.encode(text, options);
  check_streamed(tokenizer, ids, tokenizer.decode(ids, false));
}

/// A vocabulary of SentencePiece's kind: byte tokens, then what the input adds.
VocabularyData made_sentencepiece(unsigned options) {
  VocabularyData data;
  data.source = "made";
  data.model = "llama";
  add_token(data, "<unk>", TokenType::unknown);
  data.unknown = 0;
  for (int byte = 0; byte < 256 && (options & 1) != 0; ++byte) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    add_token(data, std::string("<0x") + digits[byte / 16] + digits[byte % 16] + ">", TokenType::byte);
  }
  data.space_prefix = static_cast<SpacePrefix>((options >> 1) % 3);
  data.prefix_only_at_start = (options & 8) != 0;
  data.spaces_behind_added = (options & 16) != 0;
  data.strip_leading_space = data.space_prefix == SpacePrefix::always && data.prefix_only_at_start;
  return data;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t options = data[0];
  std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  const bool is_sentencepiece = options >= 128;
  VocabularyData vocabulary = is_sentencepiece ? made_sentencepiece(options) : made_vocabulary({});
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
  if (is_sentencepiece && vocabulary.merges.empty()) {
    // Falling, with some equal.
    for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i) {
      vocabulary.scores.push_back(-static_cast<float>(i / 2));
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
        const bool changes = is_sentencepiece || (rule.normalize_nfc && !is_trivially_nfc(repaired));
        if (changes) {
          check_ids(tokenizer, text, encode_options);
        } else {
          check_text(tokenizer, text, encode_options, repaired);
        }
      }
    }
  } catch (const headrace::InputError&) {
  }
  return 0;
}
