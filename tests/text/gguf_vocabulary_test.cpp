// Every key of a vocabulary, absent ones, and values out of range.
#include "text/gguf_vocabulary.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../formats/gguf_builder.hpp"
#include "base/error.hpp"
#include "formats/byte_source.hpp"

namespace headrace::text {
namespace {

using formats::testing::GgufBuilder;
using testing::ElementsAre;
using testing::HasSubstr;

VocabularyData read(const GgufBuilder& builder) {
  const std::string file = builder.build();
  return read_vocabulary(formats::Gguf::read(formats::MemorySource("made.gguf", std::as_bytes(std::span(file)))));
}

GgufBuilder minimal() {
  GgufBuilder builder;
  builder.add("tokenizer.ggml.model", "gpt2");
  builder.add("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b", "ab"});
  return builder;
}

TEST(GgufVocabulary, AllKeys) {
  const VocabularyData data = read(minimal()
                                       .add("tokenizer.ggml.pre", "smollm")
                                       .add("tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 3, 6})
                                       .add("tokenizer.ggml.scores", std::vector<float>{0.5F, 0, -1})
                                       .add("tokenizer.ggml.merges", std::vector<std::string>{"a b"})
                                       .add("tokenizer.ggml.bos_token_id", std::uint32_t{0})
                                       .add("tokenizer.ggml.eos_token_id", std::uint32_t{1})
                                       .add("tokenizer.ggml.eot_token_id", std::uint64_t{2})
                                       .add("tokenizer.ggml.eom_token_id", std::int32_t{3})
                                       .add("tokenizer.ggml.unknown_token_id", std::uint32_t{4})
                                       .add("tokenizer.ggml.padding_token_id", std::uint32_t{5})
                                       .add("tokenizer.ggml.add_bos_token", true)
                                       .add("tokenizer.ggml.add_eos_token", false)
                                       .add("tokenizer.ggml.add_space_prefix", true));
  EXPECT_EQ(data.source, "made.gguf");
  EXPECT_EQ(data.model, "gpt2");
  EXPECT_EQ(data.pre_tokenizer, "smollm");
  EXPECT_THAT(data.tokens, ElementsAre("a", "b", "ab"));
  EXPECT_THAT(data.types, ElementsAre(TokenType::normal, TokenType::control, TokenType::byte));
  EXPECT_THAT(data.scores, ElementsAre(0.5F, 0, -1));
  EXPECT_THAT(data.merges, ElementsAre("a b"));
  EXPECT_EQ(data.bos, 0);
  EXPECT_EQ(data.eos, 1);
  EXPECT_EQ(data.eot, 2);
  EXPECT_EQ(data.eom, 3);
  EXPECT_EQ(data.unknown, 4);
  EXPECT_EQ(data.padding, 5);
  EXPECT_EQ(data.add_bos, true);
  EXPECT_EQ(data.add_eos, false);
  EXPECT_EQ(data.space_prefix, SpacePrefix::unless_space);
}

TEST(GgufVocabulary, AbsentKeysAreAbsent) {
  const VocabularyData data = read(minimal());
  EXPECT_EQ(data.pre_tokenizer, "");
  EXPECT_TRUE(data.types.empty());
  EXPECT_TRUE(data.merges.empty());
  EXPECT_EQ(data.bos, std::nullopt);
  EXPECT_EQ(data.add_bos, std::nullopt);
  EXPECT_EQ(data.space_prefix, SpacePrefix::never);
}

std::string message(const GgufBuilder& builder) {
  try {
    (void)read(builder);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(GgufVocabulary, RefusesValuesOutOfRange) {
  EXPECT_THAT(message(GgufBuilder()), HasSubstr("tokenizer.ggml.model"));
  EXPECT_EQ(message(minimal().add("tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 0, 1})),
            "made.gguf: tokenizer.ggml.token_type[1]: expected a type from 1 to 6, found 0");
  EXPECT_EQ(message(minimal().add("tokenizer.ggml.token_type", std::vector<std::int32_t>{7})),
            "made.gguf: tokenizer.ggml.token_type[0]: expected a type from 1 to 6, found 7");
  EXPECT_EQ(message(minimal().add("tokenizer.ggml.bos_token_id", std::uint32_t{0xFFFFFFFF})),
            "made.gguf: tokenizer.ggml.bos_token_id: expected an id below 2^31, found 4294967295");
  EXPECT_THAT(message(minimal().add("tokenizer.ggml.merges", std::uint32_t{1})), HasSubstr("tokenizer.ggml.merges"));
  EXPECT_THAT(message(minimal().add("tokenizer.ggml.add_bos_token", "yes")), HasSubstr("add_bos_token"));
}

}  // namespace
}  // namespace headrace::text
