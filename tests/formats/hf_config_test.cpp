// Dotted paths, nulls, wrong types, and where the ends of a generation stand.
#include "formats/hf_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace headrace::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StrEq;

constexpr const char* text = R"({"model_type":"llama","hidden_size":64,"rms_norm_eps":1e-5,"head_dim":null,
  "tie_word_embeddings":true,"eos_token_id":2,"layer_types":["a"],"ids":[1,2],
  "rope_scaling":{"rope_type":"llama3","factor":8.0,"deep":{"x":1}}})";

TEST(HfConfig, PathsAndNulls) {
  const HfConfig config = HfConfig::parse("d/config.json", text);
  EXPECT_EQ(config.string("model_type"), "llama");
  EXPECT_EQ(config.integer("hidden_size"), 64);
  EXPECT_EQ(config.number("hidden_size"), 64.0);
  EXPECT_EQ(config.number("rms_norm_eps"), 1e-5);
  EXPECT_EQ(config.boolean("tie_word_embeddings"), true);
  EXPECT_EQ(config.integer("head_dim"), std::nullopt);
  EXPECT_EQ(config.integer("head_dim.x"), std::nullopt);
  EXPECT_EQ(config.integer("missing.x"), std::nullopt);
  EXPECT_EQ(config.string("rope_scaling.rope_type"), "llama3");
  EXPECT_EQ(config.integer("rope_scaling.deep.x"), 1);
  EXPECT_EQ(config.integer("rope_scaling.deep.y"), std::nullopt);
  EXPECT_THAT(*config.integers("ids"), ElementsAre(1, 2));
  EXPECT_THAT(*config.integers("eos_token_id"), ElementsAre(2));
}

TEST(HfConfig, EndsOfAGeneration) {
  EXPECT_THAT(HfConfig::parse("c", text).eos_token_ids(), ElementsAre(2));
  EXPECT_THAT(HfConfig::parse("c", text, R"({"eos_token_id":[7,8]})").eos_token_ids(), ElementsAre(7, 8));
  EXPECT_THAT(HfConfig::parse("c", text, R"({"eos_token_id":null})").eos_token_ids(), ElementsAre(2));
  EXPECT_THAT(HfConfig::parse("c", "{}").eos_token_ids(), ElementsAre());
}

template <class Action>
std::string fault(Action&& action) {
  try {
    action(HfConfig::parse("d/config.json", text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(HfConfig, Faults) {
  EXPECT_THAT(fault([](const HfConfig& c) { (void)c.integer("model_type"); }),
              StrEq("d/config.json: model_type: expected an integer of 64 bits, found the string 'llama'"));
  EXPECT_THAT(fault([](const HfConfig& c) { (void)c.integer("rope_scaling.factor"); }),
              StrEq("d/config.json: rope_scaling.factor: expected an integer of 64 bits, found the number 8.0"));
  EXPECT_THAT(fault([](const HfConfig& c) { (void)c.string("rope_scaling"); }),
              HasSubstr("expected a string, found an"));
  EXPECT_THAT(fault([](const HfConfig& c) { (void)c.integer("hidden_size.x"); }),
              StrEq("d/config.json: hidden_size: expected an object, found the number 64"));
  EXPECT_THAT(fault([](const HfConfig& c) { (void)c.integers("layer_types"); }),
              StrEq("d/config.json: layer_types[0]: expected an integer of 64 bits, found the string 'a'"));
  EXPECT_THAT(fault([](const HfConfig&) { (void)HfConfig::parse("d/config.json", "[]"); }),
              StrEq("d/config.json: expected an object, found an array of 0"));
  EXPECT_THAT(fault([](const HfConfig&) { (void)HfConfig::parse("d/config.json", text, "{"); }),
              HasSubstr("d/generation_config.json: byte 2: expected JSON"));
  EXPECT_THAT(fault([](const HfConfig&) {
                (void)HfConfig::parse("d/config.json", "{}", R"({"eos_token_id":"x"})").eos_token_ids();
              }),
              HasSubstr("d/generation_config.json: eos_token_id: expected an integer"));
  EXPECT_THAT(fault([](const HfConfig&) { (void)HfConfig::read("/nonexistent"); }),
              HasSubstr("/nonexistent/config.json: no such file"));
}

}  // namespace
}  // namespace headrace::formats
