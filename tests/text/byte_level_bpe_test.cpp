// Merges worked out by hand, against a slow search on random vocabularies, and their number on one huge word.
#include "text/byte_level_bpe.hpp"

#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "made_vocabulary.hpp"

namespace headrace::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<TokenId> encode(const ByteLevelBpe& bpe, std::string_view text) {
  std::vector<TokenId> ids;
  std::string buffer;
  bpe.encode(bpe.normalize(text, true, buffer), true, ids);
  return ids;
}

TEST(ByteLevelBpe, MergesByRankThenFromTheLeft) {
  const ByteLevelBpe bpe(made_vocabulary({"b c", "a b", "a a", "bc d"}));
  EXPECT_THAT(encode(bpe, "abc"), ElementsAre('a', 256));
  EXPECT_THAT(encode(bpe, "ab"), ElementsAre(257));
  EXPECT_THAT(encode(bpe, "aaa"), ElementsAre(258, 'a'));
  EXPECT_THAT(encode(bpe, "aaab"), ElementsAre(258, 257)) << "a b comes before a a";
  EXPECT_THAT(encode(bpe, "bcd"), ElementsAre(259));
  EXPECT_THAT(encode(bpe, ""), ElementsAre());
}

TEST(ByteLevelBpe, SpaceIsWrittenAsAPrintableCharacter) {
  const ByteLevelBpe bpe(made_vocabulary({"\xC4\xA0 a"}));
  EXPECT_THAT(encode(bpe, "b a"), ElementsAre('b', 256));
  EXPECT_EQ(bpe.bytes(256), " a");
  EXPECT_EQ(bpe.bytes(0), std::string_view("\0", 1));
}

/// The definition: again and again, the leftmost pair of the smallest rank is merged.
std::vector<std::string> merge_slowly(const std::vector<std::string>& merges, const std::string& word) {
  std::vector<std::string> symbols;
  for (const char c : word) symbols.emplace_back(1, c);
  for (;;) {
    std::size_t best_rank = merges.size();
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (std::size_t rank = 0; rank < best_rank; ++rank) {
        if (merges[rank] != symbols[i] + " " + symbols[i + 1]) continue;
        best_rank = rank;
        best = i;
      }
    }
    if (best_rank == merges.size()) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(ByteLevelBpe, EqualsTheDefinitionOnRandomVocabularies) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> tokens = {"a", "b", "c"};
    std::set<std::string> known(tokens.begin(), tokens.end());
    std::vector<std::string> merges;
    std::set<std::string> known_merges;
    for (int i = 0; i < 12; ++i) {
      const std::string left = tokens[random() % tokens.size()];
      const std::string right = tokens[random() % tokens.size()];
      if (!known_merges.insert(left + " " + right).second) continue;
      merges.push_back(left + " " + right);
      if (known.insert(left + right).second) tokens.push_back(left + right);
    }
    const ByteLevelBpe bpe(made_vocabulary(merges));
    std::string word;
    for (int i = 0; i < 40; ++i) word += static_cast<char>('a' + random() % 3);
    std::vector<std::string> found;
    for (const TokenId id : encode(bpe, word)) found.emplace_back(bpe.bytes(id));
    ASSERT_EQ(found, merge_slowly(merges, word)) << word;
  }
}

TEST(ByteLevelBpe, OneHugeWordTakesLinearlyManyCandidates) {
  std::vector<std::string> merges;
  for (std::string half = "a"; half.size() <= 64; half += half) merges.push_back(half + " " + half);
  merges.push_back("b a");
  const ByteLevelBpe bpe(made_vocabulary(merges));
  std::string alternating;
  for (int i = 0; i < 1'000'000; ++i) alternating += i % 2 != 0 ? 'a' : 'b';
  for (const std::string& word : {std::string(1 << 20, 'a'), std::string((1 << 20) + 77, 'a'), alternating}) {
    std::vector<TokenId> ids;
    EXPECT_LE(bpe.encode_word(word, ids), 3 * word.size());
    std::string text;
    for (const TokenId id : ids) text += bpe.bytes(id);
    EXPECT_TRUE(text == word);
    EXPECT_LE(ids.size(), word.size() / 2 + 1);
  }
}

TEST(ByteLevelBpe, IgnoreMergesTakesAWholeWord) {
  VocabularyData data = made_vocabulary({"a b"});
  const TokenId whole = add_token(data, "abc", TokenType::normal);  // no merge leads to it
  add_token(data, "xyz", TokenType::control);
  data.pre_tokenizer = "llama-bpe";
  const ByteLevelBpe taking(data);
  EXPECT_THAT(encode(taking, "abc"), ElementsAre(whole));
  EXPECT_THAT(encode(taking, "abcd"), ElementsAre(256, 'c', 'd'));
  EXPECT_THAT(encode(taking, "xyz"), ElementsAre('x', 'y', 'z')) << "control tokens are never words";
  data.pre_tokenizer = "gpt-2";
  EXPECT_THAT(encode(ByteLevelBpe(data), "abc"), ElementsAre(256, 'c'));
}

TEST(ByteLevelBpe, NormalizesForQwen2Only) {
  VocabularyData data = made_vocabulary({});
  EXPECT_EQ(encode(ByteLevelBpe(data), "e\xCC\x81").size(), 3u);
  data.pre_tokenizer = "qwen2";
  EXPECT_THAT(encode(ByteLevelBpe(data), "e\xCC\x81"), ElementsAre(0xC3, 0xA9));
}

TEST(ByteLevelBpe, SpacePrefix) {
  VocabularyData data = made_vocabulary({"\xC4\xA0 a"});
  data.space_prefix = SpacePrefix::unless_space;
  const ByteLevelBpe bpe(data);
  EXPECT_THAT(encode(bpe, "a"), ElementsAre(256));
  EXPECT_THAT(encode(bpe, " a"), ElementsAre(256));
  EXPECT_THAT(encode(bpe, ""), ElementsAre());
}

TEST(ByteLevelBpe, BytesWithoutATokenAreLeftOut) {
  VocabularyData data = made_vocabulary({"a b"});
  data.tokens[4] = "gone";
  EXPECT_THAT(encode(ByteLevelBpe(data),
                     "a\x04"
                     "b"),
              ElementsAre('a', 'b'));
  EXPECT_THAT(encode(ByteLevelBpe(data), "\x04"), ElementsAre());
}

TEST(ByteLevelBpe, RefusesBrokenMerges) {
  for (const std::string merge : {"ab", "a  b", " b", "a ", "", "a b c", "a \xFF", "a \xC4"}) {
    VocabularyData data = made_vocabulary({"a b"});
    data.merges.push_back(merge);
    try {
      const ByteLevelBpe bpe(data);
      ADD_FAILURE() << merge;
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("made: tokenizer.ggml.merges[1]: expected two tokens"));
    }
  }
  for (const std::string merge : {"a c", "ab c", "abc a"}) {
    VocabularyData data = made_vocabulary({"a b"});
    data.merges.push_back(merge);
    EXPECT_THROW(ByteLevelBpe{data}, InputError) << merge;
  }
}

}  // namespace
}  // namespace headrace::text
