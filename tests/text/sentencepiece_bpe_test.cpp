// Merges by score worked out by hand and against a slow search, byte tokens, prefixes, decoding in pieces, and the
// number of merges on one huge text.
#include "text/sentencepiece_bpe.hpp"

#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "text/tokenizer.hpp"

namespace headrace::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* space = "\xE2\x96\x81";

/// Ids 0 to 2 are <unk>, <s>, </s>; 3 to 258 the bytes; then `pieces` with falling scores.
VocabularyData made(const std::vector<std::string>& pieces) {
  VocabularyData data;
  data.source = "made";
  data.model = "llama";
  data.tokens = {"<unk>", "<s>", "</s>"};
  data.types = {TokenType::unknown, TokenType::control, TokenType::control};
  data.unknown = 0;
  data.bos = 1;
  data.eos = 2;
  for (int byte = 0; byte < 256; ++byte) {
    data.tokens.push_back(fmt::format("<0x{:02X}>", byte));
    data.types.push_back(TokenType::byte);
  }
  for (const std::string& piece : pieces) {
    data.tokens.push_back(piece);
    data.types.push_back(TokenType::normal);
  }
  data.scores.assign(data.tokens.size(), 0);
  for (std::size_t i = 259; i < data.tokens.size(); ++i) data.scores[i] = -static_cast<float>(i - 259);
  return data;
}
TokenId byte_id(unsigned char byte) { return 3 + byte; }

std::vector<std::string> pieces_of(const VocabularyData& data, std::string_view text) {
  std::vector<TokenId> ids;
  SentencePieceBpe(data).encode_escaped(text, ids);
  std::vector<std::string> pieces;
  for (const TokenId id : ids) pieces.push_back(data.tokens[id]);
  return pieces;
}

TEST(SentencePieceBpe, MergesByScoreThenFromTheLeft) {
  const VocabularyData data = made({"bc", "ab", "aa", "bcd", "a", "b", "c", "d"});
  EXPECT_THAT(pieces_of(data, "abc"), ElementsAre("a", "bc"));
  EXPECT_THAT(pieces_of(data, "aaa"), ElementsAre("aa", "a"));
  EXPECT_THAT(pieces_of(data, "aaab"), ElementsAre("aa", "ab"));
  EXPECT_THAT(pieces_of(data, "abcd"), ElementsAre("a", "bcd"));
  EXPECT_THAT(pieces_of(data, ""), ElementsAre());
}

TEST(SentencePieceBpe, EqualScoresMergeFromTheLeft) {
  VocabularyData data = made({"ab", "ba", "a", "b"});
  data.scores.assign(data.scores.size(), 0);
  EXPECT_THAT(pieces_of(data, "aba"), ElementsAre("ab", "a"));
  EXPECT_THAT(pieces_of(data, "bab"), ElementsAre("ba", "b"));
}

TEST(SentencePieceBpe, CharactersWithoutATokenBecomeBytes) {
  const VocabularyData data = made({"a", "xy"});
  EXPECT_THAT(pieces_of(data, "a\xC3\xA4"), ElementsAre("a", "<0xC3>", "<0xA4>"));
  EXPECT_THAT(pieces_of(data, "xyx"), ElementsAre("xy", "<0x78>")) << "x and y merge though neither is a token";
  EXPECT_THAT(pieces_of(data, "<0x41>"), ElementsAre("<0x3C>", "<0x30>", "<0x78>", "<0x34>", "<0x31>", "<0x3E>"));
}

TEST(SentencePieceBpe, WithoutByteTokensUnknownsFuse) {
  VocabularyData data = made({"a"});
  for (std::size_t i = 3; i < 259; ++i) data.types[i] = TokenType::normal;
  EXPECT_THAT(pieces_of(data, "axyazz"), ElementsAre("a", "<unk>", "a", "<unk>"));
  data.fuse_unknown = false;
  EXPECT_THAT(pieces_of(data, "axya"), ElementsAre("a", "<unk>", "<unk>", "a"));
  data.unknown.reset();
  EXPECT_THAT(pieces_of(data, "axya"), ElementsAre("a", "a"));
}

TEST(SentencePieceBpe, ControlTokensNeverComeOutOfText) {
  VocabularyData data = made({"s>", "<", "s", ">"});
  EXPECT_THAT(pieces_of(data, "<s>"), ElementsAre("<", "s>"));
}

TEST(SentencePieceBpe, ListedMergesWinOverScores) {
  VocabularyData data = made({"a", "b", "ab", "ba", "aba"});
  data.merges = {"b a", "a b", "ab a"};
  EXPECT_THAT(pieces_of(data, "aba"), ElementsAre("a", "ba"));
  data.merges = {"a b", "b a"};
  EXPECT_THAT(pieces_of(data, "aba"), ElementsAre("ab", "a")) << "aba is a token, but no merge leads to it";
  data.merges = {"a b", "ab a"};
  EXPECT_THAT(pieces_of(data, "aba"), ElementsAre("aba"));
  data.merges.clear();
  data.scores.clear();
  EXPECT_THAT(pieces_of(data, "ab"), ElementsAre("a", "b")) << "neither merges nor scores: no merge";
}

/// The definition: again and again, the leftmost pair whose result has the highest score is merged.
std::vector<std::string> merge_slowly(const VocabularyData& data, const std::string& text) {
  std::vector<std::string> symbols;
  for (const char c : text) symbols.emplace_back(1, c);
  for (;;) {
    float best_score = -std::numeric_limits<float>::infinity();
    std::size_t best = symbols.size();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (std::size_t id = 259; id < data.tokens.size(); ++id) {
        if (data.tokens[id] != symbols[i] + symbols[i + 1] || data.scores[id] <= best_score) continue;
        best_score = data.scores[id];
        best = i;
      }
    }
    if (best == symbols.size()) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(SentencePieceBpe, EqualsTheDefinitionOnRandomVocabularies) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::set<std::string> pieces = {"a", "b", "c"};
    while (pieces.size() < 14) {
      std::string piece;
      for (std::size_t size = 2 + random() % 4; piece.size() < size;) piece += static_cast<char>('a' + random() % 3);
      pieces.insert(piece);
    }
    VocabularyData data = made({pieces.begin(), pieces.end()});
    for (float& score : data.scores) score = static_cast<float>(random() % 8);  // some are equal
    std::string text;
    for (int i = 0; i < 40; ++i) text += static_cast<char>('a' + random() % 3);
    ASSERT_EQ(pieces_of(data, text), merge_slowly(data, text)) << text;
  }
}

TEST(SentencePieceBpe, OneHugeTextTakesLinearlyManyCandidates) {
  std::vector<std::string> pieces;
  for (std::string piece = "a"; piece.size() <= 64; piece += piece) pieces.push_back(piece);
  pieces.emplace_back("ba");
  const SentencePieceBpe bpe(made(pieces));
  std::string alternating;
  for (int i = 0; i < 1'000'000; ++i) alternating += i % 2 != 0 ? 'a' : 'b';
  for (const std::string& text : {std::string(1 << 20, 'a'), std::string((1 << 20) + 77, 'a'), alternating}) {
    std::vector<TokenId> ids;
    EXPECT_LE(bpe.encode_escaped(text, ids), 3 * text.size());
    std::string decoded;
    for (const TokenId id : ids) decoded += bpe.bytes(id);
    EXPECT_TRUE(decoded == text);
    EXPECT_LE(ids.size(), text.size() / 2 + 1);
  }
}

std::vector<std::string> encode(const VocabularyData& data, std::string_view text, bool parse_special = false) {
  std::vector<std::string> pieces;
  for (const TokenId id : Tokenizer(data).encode(text, {.parse_special = parse_special})) {
    pieces.push_back(data.tokens[id]);
  }
  return pieces;
}

TEST(SentencePieceBpe, SpacePrefixes) {
  VocabularyData data = made({std::string(space) + "a", "a", space});
  const std::string _a = std::string(space) + "a";
  EXPECT_THAT(encode(data, "a a"), ElementsAre("a", _a));
  data.space_prefix = SpacePrefix::always;
  EXPECT_THAT(encode(data, "a a"), ElementsAre(_a, _a));
  EXPECT_THAT(encode(data, " a"), ElementsAre(space, _a));
  EXPECT_THAT(encode(data, ""), ElementsAre());
  EXPECT_THAT(encode(data, "a</s>a</s>", true), ElementsAre(_a, "</s>", _a, "</s>"));
  data.prefix_only_at_start = true;
  EXPECT_THAT(encode(data, "a</s>a", true), ElementsAre(_a, "</s>", "a"));
  EXPECT_THAT(encode(data, "</s>a", true), ElementsAre("</s>", "a"));
  data.space_prefix = SpacePrefix::unless_space;
  EXPECT_THAT(encode(data, " a"), ElementsAre(_a));
}

TEST(SentencePieceBpe, NormalizedAddedTokensAreFoundBehindTheirPrefix) {
  VocabularyData data = made({std::string(space) + "a", "a", space, "<", "x", ">"});
  data.tokens.emplace_back("<x>");
  data.types.push_back(TokenType::user_defined);
  data.scores.push_back(0);
  data.space_prefix = SpacePrefix::always;
  EXPECT_THAT(encode(data, "a<x>a"), ElementsAre(std::string(space) + "a", "<x>", std::string(space) + "a"));
  data.added_flags.resize(data.tokens.size());
  data.added_flags.back().normalized = true;
  EXPECT_THAT(encode(data, "<x>a <x>a<x>"), ElementsAre("<x>", "a", "<x>", "a", "<", "x", ">"));
  data.spaces_behind_added = true;
  EXPECT_THAT(encode(data, "a<x>"), ElementsAre(std::string(space) + "a", "<x>"));
}

TEST(SentencePieceBpe, StrippedAddedTokens) {
  VocabularyData data = made({space, "a", "\t"});
  data.added_flags.resize(3);
  data.added_flags[2].lstrip = true;
  EXPECT_THAT(encode(data, "a \t\xE2\x80\x83</s> a", true), ElementsAre("a", "</s>", space, "a"));
  EXPECT_THAT(encode(data, " </s> </s>", true), ElementsAre("</s>", "</s>"));
  data.added_flags[2] = {.rstrip = true};
  EXPECT_THAT(encode(data,
                     "a </s>\t \xC2\xA0"
                     "a",
                     true),
              ElementsAre("a", space, "</s>", "a"));
  EXPECT_THAT(encode(data, "a </s> ", true), ElementsAre("a", space, "</s>"));
}

TEST(SentencePieceBpe, DecodesWithoutTheLeadingSpace) {
  VocabularyData data = made({std::string(space) + "a", space, "a"});
  const TokenId _a = 259;
  data.space_prefix = SpacePrefix::always;
  EXPECT_EQ(Tokenizer(data).decode(std::vector<TokenId>{_a, _a}, false), " a a");
  data.strip_leading_space = true;
  const Tokenizer tokenizer(data);
  for (const std::string text : {"a a", " a", "  ", "\xC3\xA4 a", "a\xE2\x82\xAC\xF0\x9F\xA6\x86 a", "<0x41>\n"}) {
    const std::vector<TokenId> ids = tokenizer.encode(text, {});
    EXPECT_EQ(tokenizer.decode(ids, false), text);
    StreamingDecoder decoder(tokenizer, true);
    std::string streamed;
    std::vector<TokenId> with_bos = ids;
    with_bos.insert(with_bos.begin(), 1);
    for (const TokenId id : with_bos) {
      const std::string piece = decoder.push(id);
      EXPECT_TRUE(is_valid_utf8(piece));
      streamed += piece;
    }
    EXPECT_EQ(streamed + decoder.flush(), text);
    EXPECT_EQ(tokenizer.decode(with_bos, true), text);
  }
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{1, _a}, false), "<s> a");
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{byte_id(0xE2), byte_id(0x82), _a}, false), "\xEF\xBF\xBD a");
}

TEST(SentencePieceBpe, RefusesWhatIsBroken) {
  const auto message = [](const VocabularyData& data) -> std::string {
    try {
      const Tokenizer tokenizer(data);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  VocabularyData data = made({"a", "b", "ab"});
  EXPECT_EQ(message(data), "");
  data.scores.pop_back();
  EXPECT_EQ(message(data), "made: tokenizer.ggml.scores: expected 262 scores, found 261");
  data.scores.push_back(std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(message(data), "made: tokenizer.ggml.scores[261]: expected a number, found nan");
  data = made({"a"});
  data.tokens[3] = "<0x0G>";
  EXPECT_EQ(message(data), "made: tokenizer.ggml.tokens[3]: expected a byte token as <0x1F>, found '<0x0G>'");
  for (const std::string merge : {"ab", "a  b", " b", "a ", "", "a b ab"}) {
    data = made({"a", "b", "ab"});
    data.merges = {"a b", merge};
    EXPECT_THAT(message(data), HasSubstr("made: tokenizer.ggml.merges[1]: expected two tokens with a space")) << merge;
  }
  data.merges = {"a b", "b a"};
  data.field_prefix = "model.";
  EXPECT_EQ(message(data), "made: model.merges[1]: expected both parts and the result to be tokens, found 'b a'");
}

}  // namespace
}  // namespace headrace::text
