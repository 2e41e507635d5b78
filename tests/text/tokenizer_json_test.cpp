// What is read from a tokenizer.json, and the one line that is said of what it cannot be.
#include "text/tokenizer_json.hpp"

#include <functional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "text/pre_tokenizer.hpp"
#include "text/tokenizer.hpp"

namespace headrace::text {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StrEq;

constexpr const char* space = "\xE2\x96\x81";

/// A byte-level one, as Llama 3's.
json byte_level() {
  return {{"added_tokens",
           {{{"id", 3}, {"content", "<s>"}, {"special", true}, {"normalized", false}},
            {{"id", 4}, {"content", "<x>"}, {"special", false}, {"lstrip", true}, {"normalized", true}}}},
          {"normalizer", {{"type", "NFC"}}},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "Split"},
               {"pattern", {{"Regex", std::string(single_digits_regex)}}},
               {"behavior", "Isolated"},
               {"invert", false}},
              {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}}}}},
          {"decoder", {{"type", "ByteLevel"}}},
          {"post_processor",
           {{"type", "Sequence"},
            {"processors",
             {{{"type", "ByteLevel"}},
              {{"type", "TemplateProcessing"},
               {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
               {"special_tokens", {{"<s>", {{"ids", {3}}}}}}}}}}},
          {"model",
           {{"type", "BPE"},
            {"ignore_merges", true},
            {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}}},
            {"merges", json::array({"a b"})}}}};
}

/// One of SentencePiece's kind, as Llama 2's.
json sentencepiece() {
  return {{"added_tokens", {{{"id", 0}, {"content", "<unk>"}, {"special", true}}}},
          {"normalizer",
           {{"type", "Sequence"},
            {"normalizers",
             {{{"type", "Prepend"}, {"prepend", space}},
              {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", space}}}}}},
          {"pre_tokenizer", nullptr},
          {"decoder",
           {{"type", "Sequence"},
            {"decoders",
             {{{"type", "Replace"}, {"pattern", {{"String", space}}}, {"content", " "}},
              {{"type", "ByteFallback"}},
              {{"type", "Fuse"}},
              {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
          {"model",
           {{"type", "BPE"},
            {"unk_token", "<unk>"},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"vocab", {{"<unk>", 0}, {"<0x0A>", 1}, {"a", 2}, {space, 3}, {std::string(space) + "a", 4}, {"b", 7}}},
            {"merges", json::array({json::array({space, "a"})})}}}};
}

VocabularyData read(const json& root) { return read_tokenizer_json("t", root.dump()); }

std::string fault(const json& root) {
  try {
    const Tokenizer tokenizer(read(root));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}
/// What is said of `root` with the value at `pointer` changed.
std::string fault(json root, const std::string& pointer, const json& value) {
  root[json::json_pointer(pointer)] = value;
  return fault(root);
}

TEST(TokenizerJson, ByteLevel) {
  const VocabularyData data = read(byte_level());
  EXPECT_EQ(data.model, "gpt2");
  EXPECT_THAT(data.tokens, ElementsAre("a", "b", "ab", "<s>", "<x>"));
  EXPECT_EQ(data.types[3], TokenType::control);
  EXPECT_EQ(data.types[4], TokenType::user_defined);
  EXPECT_TRUE(data.added_flags[4].lstrip && data.added_flags[4].normalized && !data.added_flags[4].rstrip);
  EXPECT_THAT(data.merges, ElementsAre("a b"));
  EXPECT_THAT(*data.word_patterns, ElementsAre(single_digits_regex));
  EXPECT_TRUE(data.ignore_merges && data.normalize_nfc);
  EXPECT_EQ(data.bos, 3);
  EXPECT_EQ(data.add_bos, true);
  EXPECT_EQ(data.add_eos, false);
  const Tokenizer tokenizer(data);
  EXPECT_THAT(tokenizer.encode("ab <x>b<s>", {.add_special = true, .parse_special = true}), ElementsAre(3, 2, 4, 1, 3));
}

TEST(TokenizerJson, SentencePiece) {
  const VocabularyData data = read(sentencepiece());
  EXPECT_EQ(data.model, "llama");
  EXPECT_THAT(data.tokens, ElementsAre("<unk>", "<0x0A>", "a", space, std::string(space) + "a", "", "", "b"));
  EXPECT_THAT(data.types, ElementsAre(TokenType::unknown, TokenType::byte, TokenType::normal, TokenType::normal,
                                      TokenType::normal, TokenType::unused, TokenType::unused, TokenType::normal));
  EXPECT_EQ(data.unknown, 0);
  EXPECT_TRUE(data.strip_leading_space && data.fuse_unknown && !data.spaces_behind_added);
  const Tokenizer tokenizer(data);
  EXPECT_THAT(tokenizer.encode("a a\nxyb", {}), ElementsAre(4, 4, 1, 0, 7));
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{4, 4, 1}, false), "a a\n");
}

TEST(TokenizerJson, Metaspace) {
  json root = sentencepiece();
  root["normalizer"] = nullptr;
  root["pre_tokenizer"] = {
      {"type", "Metaspace"}, {"replacement", space}, {"prepend_scheme", "first"}, {"split", false}};
  const VocabularyData data = read(root);
  EXPECT_EQ(data.space_prefix, SpacePrefix::unless_space);
  EXPECT_TRUE(data.prefix_only_at_start && data.spaces_behind_added);
  EXPECT_THAT(Tokenizer(data).encode("a<unk>a", {.parse_special = true}), ElementsAre(4, 0, 2));
  EXPECT_THAT(Tokenizer(data).encode(" a", {}), ElementsAre(4));
  EXPECT_THAT(fault(root, "/pre_tokenizer/split", true), StrEq("t: pre_tokenizer.split: expected false, found true"));
  EXPECT_THAT(fault(root, "/pre_tokenizer/prepend_scheme", "last"), HasSubstr("expected always, first or never"));
  EXPECT_THAT(fault(root, "/pre_tokenizer/replacement", "_"), HasSubstr("replacement: expected"));
}

TEST(TokenizerJson, NamesWhatIsNotSupported) {
  const auto of_model = [](const std::string& key, const json& value) {
    return fault(byte_level(), "/model/" + key, value);
  };
  EXPECT_THAT(fault(byte_level()), StrEq(""));
  EXPECT_THAT(of_model("type", "Unigram"), StrEq("t: model.type: expected BPE, found the string 'Unigram'"));
  EXPECT_THAT(of_model("continuing_subword_prefix", "##"),
              StrEq("t: model.continuing_subword_prefix: expected null, found the string '##'"));
  EXPECT_THAT(of_model("end_of_word_suffix", "</w>"), HasSubstr("model.end_of_word_suffix: expected null"));
  EXPECT_THAT(of_model("dropout", 0.1), HasSubstr("model.dropout: expected null, found the number 0.1"));
  EXPECT_THAT(of_model("byte_fallback", true), HasSubstr("expected false with ByteLevel"));
  EXPECT_THAT(of_model("unk_token", "?"), HasSubstr("model.unk_token: expected a token of the vocabulary"));
  const auto of = [](const std::string& pointer, const json& value) { return fault(byte_level(), pointer, value); };
  EXPECT_THAT(of("/normalizer", {{"type", "NFKC"}}),
              StrEq("t: normalizer.type: expected NFC (others are not supported with ByteLevel), found the string "
                    "'NFKC'"));
  EXPECT_THAT(of("/pre_tokenizer/pretokenizers/0/type", "Whitespace"),
              HasSubstr("pre_tokenizer.pretokenizers[0].type: expected Split, Digits or ByteLevel"));
  EXPECT_THAT(of("/pre_tokenizer/pretokenizers/0/behavior", "Removed"), HasSubstr("behavior: expected Isolated"));
  EXPECT_THAT(of("/pre_tokenizer/pretokenizers/0/invert", true), HasSubstr("invert: expected false, found true"));
  EXPECT_THAT(of("/pre_tokenizer/pretokenizers/0/pattern", {{"String", "x"}}), HasSubstr("pattern.Regex: expected it"));
  EXPECT_THAT(of("/pre_tokenizer/pretokenizers/0/pattern/Regex", "(a+)+$"),
              StrEq("t: pre_tokenizer: expected a regular expression that is known here, found '(a+)+$'"));
  EXPECT_THAT(of("/pre_tokenizer/pretokenizers/1/add_prefix_space", true), HasSubstr("expected false behind other"));
  EXPECT_THAT(of("/decoder/type", "WordPiece"), HasSubstr("decoder.type: expected ByteLevel"));
  EXPECT_THAT(of("/post_processor/processors/0/type", "BertProcessing"),
              HasSubstr("post_processor.processors[0].type: expected ByteLevel or TemplateProcessing"));
  EXPECT_THAT(of("/post_processor/processors/1/single/1", {{"SpecialToken", {{"id", "<s>"}}}}),
              HasSubstr("expected at most one token before and one behind the text"));
  EXPECT_THAT(of("/post_processor/processors/1/special_tokens/<s>/ids", {9}), HasSubstr("expected an id below 5"));
  EXPECT_THAT(of("/post_processor/processors/1/special_tokens", json::object()),
              HasSubstr("special_tokens.'<s>': expected it to be there, found none"));
  EXPECT_THAT(of("/added_tokens/0/single_word", true), HasSubstr("added_tokens[0].single_word: expected false"));
}

TEST(TokenizerJson, NamesWhatIsNotSupportedOfSentencePiece) {
  const auto of = [](const std::string& pointer, const json& value) { return fault(sentencepiece(), pointer, value); };
  EXPECT_THAT(fault(sentencepiece()), StrEq(""));
  EXPECT_THAT(of("/normalizer/normalizers/0/type", "Lowercase"), HasSubstr("type: expected Prepend or Replace"));
  EXPECT_THAT(of("/normalizer/normalizers/0/prepend", "_"), HasSubstr("prepend: expected"));
  EXPECT_THAT(of("/normalizer/normalizers/1/content", "_"), HasSubstr("content: expected"));
  EXPECT_THAT(of("/normalizer/normalizers/1/pattern/String", "x"), HasSubstr("pattern.String: expected ' '"));
  EXPECT_THAT(of("/normalizer", nullptr), HasSubstr("expected ByteLevel or Metaspace, or the normalizer Replace"));
  EXPECT_THAT(of("/pre_tokenizer", {{"type", "Whitespace"}}), HasSubstr("pre_tokenizer.type: expected one Metaspace"));
  EXPECT_THAT(of("/decoder/decoders/3/start", 2), HasSubstr("expected Strip of one space at the start"));
  EXPECT_THAT(of("/decoder/decoders/0/content", "_"), HasSubstr("content: expected ' '"));
  EXPECT_THAT(of("/decoder/decoders/2/type", "CTC"), HasSubstr("decoder.decoders[2].type: expected Replace, Byte"));
  EXPECT_THAT(of("/model/ignore_merges", true), HasSubstr("model.ignore_merges: expected false without ByteLevel"));
}

TEST(TokenizerJson, RefusesBrokenVocabularies) {
  const auto of = [](const std::string& pointer, const json& value) { return fault(byte_level(), pointer, value); };
  EXPECT_THAT(of("/model/vocab/a", -1), HasSubstr("model.vocab.a: expected an id below 65541, found the number -1"));
  EXPECT_THAT(of("/model/vocab/a", 1 << 20), HasSubstr("model.vocab.a: expected an id below 65541"));
  EXPECT_THAT(of("/model/vocab/b", 0), HasSubstr("model.vocab.b: expected an id that token 'a' does not have"));
  EXPECT_THAT(of("/model/vocab", json::array()), HasSubstr("model.vocab: expected an object, found an array of 0"));
  EXPECT_THAT(of("/added_tokens/0/id", 1),
              HasSubstr("added_tokens[0].id: expected an id that token 'b' does not have"));
  EXPECT_THAT(of("/added_tokens/0/id", 1 << 30), HasSubstr("added_tokens[0].id: expected an id below"));
  EXPECT_THAT(of("/model/merges/0", "ab"), HasSubstr("t: model.merges[0]: expected two tokens with a space between"));
  EXPECT_THAT(of("/model/merges/0", {"a", "b c"}), HasSubstr("model.merges[0][1]: expected a token without spaces"));
  EXPECT_THAT(of("/model/merges/0", {"a"}), HasSubstr("model.merges[0]: expected \"a b\" or [\"a\", \"b\"], found an"));
  EXPECT_THAT(of("/model/merges/0", {"b", "a"}), HasSubstr("expected both parts and the result to be tokens"));
  EXPECT_THAT(of("/model/merges", 1), HasSubstr("model.merges: expected an array, found the number 1"));
  EXPECT_THAT(fault(json::object()), StrEq("t: model: expected it to be there, found none"));
  EXPECT_THAT(fault(json::array()), StrEq("t: expected an object, found an array of 0"));
}

}  // namespace
}  // namespace headrace::text
