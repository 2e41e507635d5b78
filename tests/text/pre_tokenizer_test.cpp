// Words of each pre-tokenizer on cases worked out by hand from the models' expressions, and the number of steps that
// the expressions take on long runs.
#include "text/pre_tokenizer.hpp"

#include <cstdint>
#include <string>
#include <vector>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pcre2.h>

#include "base/error.hpp"

namespace headrace::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> words(std::string_view name, std::string_view text) {
  const auto pieces = PreTokenizer(find_pre_tokenizer_rule(name, "test")).split(text);
  return {pieces.begin(), pieces.end()};
}

std::string repeat(std::string_view text, std::size_t count) {
  std::string out;
  while (count-- > 0) out += text;
  return out;
}

TEST(PreTokenizer, Gpt2) {
  EXPECT_THAT(words("gpt-2", "I'll say  2024 it's!?\n\n ok "),
              ElementsAre("I", "'ll", " say", " ", " 2024", " it", "'s", "!?", "\n\n", " ok", " "));
  EXPECT_THAT(words("gpt-2", "IT'S"), ElementsAre("IT", "'", "S"));
  EXPECT_THAT(words("gpt-2", ""), ElementsAre());
}

TEST(PreTokenizer, SmollmSplitsDigitsFirst) {
  EXPECT_THAT(words("smollm", "a  12 b"), ElementsAre("a", "  ", "1", "2", " b"));
  EXPECT_THAT(words("smollm", "x\xC2\xBD"), ElementsAre("x", "\xC2\xBD"));  // one half is a number
}

TEST(PreTokenizer, LlamaBpe) {
  EXPECT_THAT(words("llama-bpe", "IT'S 12345!\r\n\n  x\n \n y"),
              ElementsAre("IT", "'S", " ", "123", "45", "!\r\n\n", " ", " x", "\n \n", " y"));
  EXPECT_THAT(words("llama-bpe", "it'\xC5\xBF (ok)"), ElementsAre("it", "'\xC5\xBF", " (", "ok", ")"));  // long s
}

TEST(PreTokenizer, Qwen2TakesDigitsOneByOne) {
  EXPECT_THAT(words("qwen2", "_ab 123"), ElementsAre("_ab", " ", "1", "2", "3"));
}

TEST(PreTokenizer, Gpt4oCutsWhereUpperCaseBegins) {
  EXPECT_THAT(words("gpt-4o", "camelCaseHTTPServer's it'll/\n12345 x"),
              ElementsAre("camel", "Case", "HTTPServer's", " it'll", "/\n", "123", "45", " x"));
  EXPECT_THAT(words("tekken", "camelCase's 12"), ElementsAre("camel", "Case", "'s", " ", "1", "2"));
}

TEST(PreTokenizer, RegexesOfTokenizerJson) {
  EXPECT_EQ(find_word_pattern(byte_level_regex, "f"), find_pre_tokenizer_rule("gpt-2", "f").patterns[0]);
  EXPECT_EQ(find_word_pattern(single_digits_regex, "f"), find_pre_tokenizer_rule("smollm", "f").patterns[0]);
  try {
    (void)find_word_pattern("(a+)+$", "tokenizer.json");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "tokenizer.json: pre_tokenizer: expected a regular expression that is known here, found '(a+)+$'");
  }
}

TEST(PreTokenizer, WhiteSpaceIsUnicodes) {
  // U+180E is in PCRE2's \s, but is no White_Space; NBSP and U+2028 are.
  EXPECT_THAT(words("gpt-2", "a\xE1\xA0\x8E\xC2\xA0\xE2\x80\xA8"),
              ElementsAre("a", "\xE1\xA0\x8E", "\xC2\xA0\xE2\x80\xA8"));
}

TEST(PreTokenizer, UnknownNameListsTheKnownOnes) {
  try {
    (void)find_pre_tokenizer_rule("nonesuch", "file.gguf");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("file.gguf: tokenizer.ggml.pre: expected one of gpt-2, smollm, llama-bpe, qwen2"));
    EXPECT_THAT(error.what(), HasSubstr("'nonesuch'"));
  }
}

/// Texts on which a careless expression backtracks quadratically or runs out of stack.
std::vector<std::string> long_texts(std::size_t count) {
  std::vector<std::string> texts;
  for (const std::string_view unit : {" ",
                                      "\n",
                                      "\t",
                                      "a",
                                      "1",
                                      "!",
                                      "'",
                                      "\r\n",
                                      " \n",
                                      "\n ",
                                      " a",
                                      "  1",
                                      "\xC2\xA0",
                                      "\xC3\xA9",
                                      "\xCC\x81",
                                      "\xF0\x9F\xA6\x99",
                                      "\xD9\xA3",
                                      "'s",
                                      "a'",
                                      " !\n",
                                      "\xE1\xA0\x8E",
                                      "A",
                                      "aA",
                                      "\xE4\xB8\x80",
                                      "A\xE4\xB8\x80",
                                      "A\xCC\x81"}) {
    texts.push_back(repeat(unit, count));
    texts.push_back(texts.back() + "x");
    texts.push_back(texts.back() + "1" + repeat(" ", count) + "\n" + repeat(" ", count) + "1");
  }
  return texts;
}

TEST(PreTokenizer, MegabytesOfRunsAreCutWithoutLoss) {
  for (const PreTokenizerRule& rule : pre_tokenizer_rules()) {
    const PreTokenizer pre_tokenizer(rule);
    for (const std::string& text : long_texts(400'000)) {
      std::size_t size = 0;
      for (const std::string_view word : pre_tokenizer.split(text)) {
        ASSERT_EQ(word.data(), text.data() + size);
        size += word.size();
      }
      ASSERT_EQ(size, text.size());
    }
  }
}

/// How many items of the pattern PCRE2's interpreter tries in a walk over `text`, backtracking included.
std::uint64_t count_steps(std::string_view pattern, const std::string& text) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_AUTO_CALLOUT, &error, &offset, nullptr);
  pcre2_match_data* match = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  std::uint64_t steps = 0;
  pcre2_set_callout(
      context,
      [](pcre2_callout_block*, void* data) {
        ++*static_cast<std::uint64_t*>(data);
        return 0;
      },
      &steps);
  std::size_t at = 0;
  while (at < text.size() && pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                                         PCRE2_NO_UTF_CHECK, match, context) >= 0) {
    at = pcre2_get_ovector_pointer(match)[1];
  }
  pcre2_match_context_free(context);
  pcre2_match_data_free(match);
  pcre2_code_free(code);
  return steps;
}

TEST(PreTokenizer, StepsGrowLinearly) {
  for (const PreTokenizerRule& rule : pre_tokenizer_rules()) {
    for (const std::string_view pattern : rule.patterns) {
      if (pattern.empty()) continue;
      for (const std::string& text : long_texts(2000)) {
        // At a character each of some 30 items is tried once, white space twice. A quadratic walk takes 1000 times
        // that.
        EXPECT_LE(count_steps(pattern, text), 60 * text.size() + 60) << rule.name << ": " << text.substr(0, 10);
      }
    }
  }
}

}  // namespace
}  // namespace headrace::text
