// Special tokens, BOS and EOS, decoding whole and token by token, and refused vocabularies.
#include "text/tokenizer.hpp"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "made_vocabulary.hpp"

namespace headrace::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Made {
  VocabularyData data = made_vocabulary({"h i"});  // 256
  TokenId bos = add_token(data, "<s>", TokenType::control);
  TokenId eos = add_token(data, "</s>", TokenType::control);
  TokenId turn = add_token(data, "<|im_end|>", TokenType::control);
  TokenId user = add_token(data, "<tab>", TokenType::user_defined);
  Made() {
    data.bos = bos;
    data.eos = eos;
  }
};

TEST(Tokenizer, SpecialTokensInText) {
  const Made made;
  const Tokenizer tokenizer(made.data);
  EXPECT_THAT(tokenizer.encode("hi<s>hi<tab>", {.parse_special = true}), ElementsAre(256, made.bos, 256, made.user));
  EXPECT_THAT(tokenizer.encode("hi<s><tab>", {}), ElementsAre(256, '<', 's', '>', made.user));
  EXPECT_THAT(tokenizer.encode("<s", {.parse_special = true}), ElementsAre('<', 's'));
  EXPECT_THAT(tokenizer.encode("", {.parse_special = true}), ElementsAre());
}

TEST(Tokenizer, AddedTokensThatAreNoUtf8AreNotFoundInsideACharacter) {
  VocabularyData data = made_vocabulary({});
  add_token(data, "\x85", TokenType::user_defined);  // the second byte of U+0305
  const Tokenizer tokenizer(data);
  EXPECT_THAT(tokenizer.encode("e\u0305", {.parse_special = true}), ElementsAre('e', 0xcc, 0x85));
}

TEST(Tokenizer, BosAndEosAsTheVocabularySays) {
  Made made;
  EXPECT_THAT(Tokenizer(made.data).encode("hi", {.add_special = true}), ElementsAre(256));
  made.data.add_bos = true;
  made.data.add_eos = true;
  EXPECT_THAT(Tokenizer(made.data).encode("hi", {.add_special = true}), ElementsAre(made.bos, 256, made.eos));
  EXPECT_THAT(Tokenizer(made.data).encode("hi", {}), ElementsAre(256));
  made.data.add_bos.reset();
  made.data.add_eos.reset();
  made.data.pre_tokenizer = "llama-bpe";  // its models begin with BOS
  EXPECT_THAT(Tokenizer(made.data).encode("hi", {.add_special = true}), ElementsAre(made.bos, 256));
  made.data.add_bos = false;
  EXPECT_FALSE(Tokenizer(made.data).adds_bos());
  made.data.add_bos.reset();
  made.data.bos.reset();
  EXPECT_FALSE(Tokenizer(made.data).adds_bos());
}

TEST(Tokenizer, WhatTokensAre) {
  const Made made;
  const Tokenizer tokenizer(made.data);
  EXPECT_EQ(tokenizer.vocabulary_size(), 261u);
  EXPECT_TRUE(tokenizer.is_control(made.bos));
  EXPECT_FALSE(tokenizer.is_control(made.user));
  EXPECT_FALSE(tokenizer.is_control('a'));
  EXPECT_TRUE(tokenizer.is_end_of_generation(made.eos));
  EXPECT_TRUE(tokenizer.is_end_of_generation(made.turn)) << "known by its name";
  EXPECT_FALSE(tokenizer.is_end_of_generation(made.bos));
  EXPECT_EQ(tokenizer.token_bytes(made.turn), "<|im_end|>");
  EXPECT_EQ(tokenizer.token_bytes(0xFF), "\xFF");
  EXPECT_EQ(tokenizer.eos(), made.eos);
  EXPECT_EQ(tokenizer.eot(), std::nullopt);
}

TEST(Tokenizer, IllFormedTextIsRepaired) {
  const Tokenizer tokenizer(Made().data);
  EXPECT_EQ(tokenizer.encode("a\xFF"
                             "b\xE2\x82",
                             {}),
            tokenizer.encode("a\xEF\xBF\xBD"
                             "b\xEF\xBF\xBD",
                             {}));
}

TEST(Tokenizer, DecodeRoundTripsAndRefusesUnknownIds) {
  const Made made;
  const Tokenizer tokenizer(made.data);
  const std::string text = "hi \xF0\x9F\xA6\x99 <s>\n<tab>";
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {.parse_special = true}), false), text);
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{made.bos, 'a', made.user, made.eos}, true), "a<tab>");
  for (const TokenId id : {-1, 261}) {
    EXPECT_THROW((void)tokenizer.decode(std::vector<TokenId>{id}, false), InputError);
    EXPECT_THROW((void)tokenizer.token_bytes(id), InputError);
    EXPECT_THROW((void)StreamingDecoder(tokenizer, true).push(id), InputError);
    EXPECT_FALSE(tokenizer.is_end_of_generation(id));
  }
}

TEST(StreamingDecoder, EmitsWholeCharactersOnly) {
  const Made made;
  const Tokenizer tokenizer(made.data);
  StreamingDecoder decoder(tokenizer, true);
  std::vector<std::string> out;
  for (const TokenId id :
       {0xF0, 0x9F, 0xA6, 0x99, static_cast<int>('a'), 0xC3, static_cast<int>('b'), 0x80, made.eos, 0xE2}) {
    out.push_back(decoder.push(id));
  }
  EXPECT_THAT(out, ElementsAre("", "", "", "\xF0\x9F\xA6\x99", "a", "",
                               "\xEF\xBF\xBD"
                               "b",
                               "\xEF\xBF\xBD", "", ""));
  EXPECT_EQ(decoder.flush(), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.flush(), "");
}

TEST(StreamingDecoder, AllOfItEqualsDecode) {
  const Made made;
  const Tokenizer tokenizer(made.data);
  // Every sequence of four of these: leads, continuations, a letter, a control token.
  const std::vector<TokenId> alphabet = {0xE2, 0x82, 0xAC, 0xF0, 0x9F, 0xFF, 'a', made.eos};
  for (std::size_t n = 0; n < alphabet.size() * alphabet.size() * alphabet.size() * alphabet.size(); ++n) {
    std::vector<TokenId> ids;
    for (std::size_t i = 0, rest = n; i < 4; ++i, rest /= alphabet.size())
      ids.push_back(alphabet[rest % alphabet.size()]);
    for (const bool skip_control : {false, true}) {
      StreamingDecoder decoder(tokenizer, skip_control);
      std::string out;
      for (const TokenId id : ids) {
        const std::string piece = decoder.push(id);
        ASSERT_TRUE(is_valid_utf8(piece));
        out += piece;
      }
      ASSERT_EQ(out + decoder.flush(), tokenizer.decode(ids, skip_control));
    }
  }
}

TEST(Tokenizer, RefusesBrokenVocabularies) {
  const auto message = [](const std::function<void(VocabularyData&)>& change) -> std::string {
    Made made;
    change(made.data);
    try {
      const Tokenizer tokenizer(made.data);
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message([](auto& data) { data.tokens.clear(); }),
            "made: tokenizer.ggml.tokens: expected 1 to 2^31-1 tokens, found 0");
  EXPECT_EQ(message([](auto& data) { data.types.pop_back(); }),
            "made: tokenizer.ggml.token_type: expected 261 types, found 260");
  EXPECT_EQ(message([](auto& data) { data.bos = 261; }),
            "made: tokenizer.ggml.bos_token_id: expected an id below 261, found 261");
  EXPECT_EQ(message([](auto& data) { data.eot = -1; }),
            "made: tokenizer.ggml.eot_token_id: expected an id below 261, found -1");
  EXPECT_EQ(message([](auto& data) { data.model = "bert"; }),
            "made: tokenizer.ggml.model: expected gpt2 (byte-level BPE) or llama (SentencePiece's BPE), found 'bert'");
  EXPECT_THAT(message([](auto& data) { data.pre_tokenizer = "nonesuch"; }), HasSubstr("found 'nonesuch'"));
  EXPECT_THAT(message([](auto& data) { data.add_bos = true, data.bos.reset(); }), HasSubstr("bos_token_id"));
  EXPECT_THAT(message([](auto& data) { data.add_eos = true, data.eos.reset(); }), HasSubstr("eos_token_id"));
}

}  // namespace
}  // namespace headrace::text
