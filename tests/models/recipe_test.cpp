// Recipes: which tensor gets which Format, worked out by hand from what llama.cpp documents of its mixes.
#include "models/recipe.hpp"

#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "formats/gguf_builder.hpp"

namespace headrace::models {
namespace {

using formats::find_format;
using formats::Gguf;
using formats::GgufTensor;
using formats::MemorySource;
using formats::testing::GgufBuilder;
using ::testing::ElementsAre;

GgufTensor tensor(const std::string& name, std::vector<std::int64_t> dimensions, std::string_view format = "f16") {
  GgufTensor made;
  made.name = name;
  made.dimensions = std::move(dimensions);
  for (const std::int64_t dimension : made.dimensions) made.elements *= dimension;
  made.format = find_format(format);
  return made;
}

constexpr RecipeModel grouped{.layers = 32, .experts = 0, .heads_per_key_head = 4, .tied = false};
constexpr RecipeModel plain{.layers = 32, .experts = 0, .heads_per_key_head = 1, .tied = true};
constexpr RecipeModel of_experts{.layers = 32, .experts = 8, .heads_per_key_head = 4, .tied = false};

std::string chosen(std::string_view recipe, const GgufTensor& tensor, const RecipeModel& model = grouped,
                   bool pure = false) {
  const FormatChoice choice = choose_format(*find_recipe(recipe), pure, model, Gguf(), tensor);
  return std::string(choice.format->name) +
         (choice.wanted != nullptr ? " for " + std::string(choice.wanted->name) : "");
}

std::string in_layer(std::string_view recipe, int layer, const std::string& name, const RecipeModel& model = grouped) {
  return chosen(recipe, tensor("blk." + std::to_string(layer) + "." + name, {512, 256}), model);
}

/// The layers whose tensor of that name is not in the Format of most.
std::set<int> layers_with(std::string_view recipe, const std::string& format, const std::string& name) {
  std::set<int> layers;
  for (int layer = 0; layer < 32; ++layer) {
    if (in_layer(recipe, layer, name) == format) layers.insert(layer);
  }
  return layers;
}

TEST(Recipes, AreFoundByNameInAnyCase) {
  std::set<std::string_view> names;
  for (const Recipe& recipe : recipe_table()) {
    EXPECT_EQ(find_recipe(recipe.name), &recipe);
    EXPECT_NE(find_format(recipe.base), nullptr) << recipe.name;
    names.insert(recipe.name);
  }
  EXPECT_EQ(names.size(), recipe_table().size());
  EXPECT_EQ(find_recipe("Q4_K_M"), find_recipe("q4_k_m"));
  EXPECT_EQ(find_recipe("q4_k"), find_recipe("q4_k_m"));
  EXPECT_EQ(find_recipe("q4_k_m")->file_type, 15u);
  EXPECT_EQ(find_recipe("q4"), nullptr);
  EXPECT_EQ(find_recipe(""), nullptr);
  for (const formats::Format& format : formats::format_table()) {
    EXPECT_NE(find_recipe(format.name), nullptr) << format.name;
  }
}

TEST(Recipes, GiveMoreBitsToSomeLayers) {
  // The first and the last eighth, and every third between, counted from the end of the first eighth.
  const std::set<int> more = {0, 1, 2, 3, 6, 9, 12, 15, 18, 21, 24, 27, 28, 29, 30, 31};
  EXPECT_EQ(layers_with("q4_k_m", "q6_k", "attn_v.weight"), more);
  EXPECT_EQ(layers_with("q4_k_m", "q6_k", "ffn_down.weight"), more);
  EXPECT_EQ(layers_with("q5_k_m", "q6_k", "attn_v.weight"), more);
  EXPECT_EQ(layers_with("q4_k_m", "q4_k", "ffn_up.weight").size(), 32u);
  EXPECT_EQ(layers_with("q4_k_m", "q4_k", "attn_k.weight").size(), 32u);
  EXPECT_EQ(layers_with("q4_k_s", "q5_k", "attn_v.weight"), (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(layers_with("q4_k_s", "q5_k", "ffn_down.weight"), (std::set<int>{0, 1, 2, 3}));
  EXPECT_EQ(layers_with("q3_k_m", "q5_k", "attn_v.weight"), (std::set<int>{0, 1}));
  EXPECT_EQ(layers_with("q3_k_m", "q5_k", "ffn_down.weight"), (std::set<int>{0, 1}));
  EXPECT_EQ(layers_with("q3_k_m", "q4_k", "ffn_down.weight").size(), 30u);
  EXPECT_EQ(layers_with("q3_k_l", "q5_k", "attn_output.weight").size(), 32u);
  EXPECT_EQ(layers_with("q2_k", "q3_k", "attn_output.weight").size(), 32u);
  EXPECT_EQ(layers_with("q2_k", "q2_k", "ffn_gate.weight").size(), 32u);
}

TEST(Recipes, AskAboutTheModel) {
  EXPECT_EQ(in_layer("q2_k", 9, "attn_v.weight", grouped), "q4_k");
  EXPECT_EQ(in_layer("q2_k", 9, "attn_v.weight", plain), "q3_k");
  EXPECT_EQ(in_layer("iq4_xs", 9, "attn_v.weight", grouped), "q5_k");
  EXPECT_EQ(in_layer("iq4_xs", 9, "attn_v.weight", plain), "iq4_xs");
  EXPECT_EQ(in_layer("q4_k_m", 9, "attn_v.weight", of_experts), "q8_0");
  EXPECT_EQ(in_layer("q4_k_m", 9, "attn_k.weight", of_experts), "q8_0");
  EXPECT_EQ(in_layer("q4_k_m", 9, "attn_output.weight", of_experts), "q5_k");
  RecipeModel deep = grouped;
  deep.layers = 80;
  EXPECT_EQ(in_layer("q4_k_m", 11, "attn_v.weight", deep), "q5_k");
  EXPECT_EQ(in_layer("q4_k_m", 12, "attn_v.weight", deep), "q6_k");
}

TEST(Recipes, KnowOutputsAndExperts) {
  const GgufTensor output = tensor("output.weight", {512, 1000});
  const GgufTensor embedding = tensor("token_embd.weight", {512, 1000});
  EXPECT_EQ(chosen("q4_k_m", output, grouped), "q6_k");
  EXPECT_EQ(chosen("q4_0", output, grouped), "q6_k");
  EXPECT_EQ(chosen("q8_0", output, grouped), "q8_0");
  EXPECT_EQ(chosen("f16", output, grouped), "f16");
  EXPECT_EQ(chosen("q4_k_m", embedding, grouped), "q4_k");
  EXPECT_EQ(chosen("q4_k_m", embedding, plain), "q6_k") << "it is the output too";
  EXPECT_EQ(chosen("q4_k_m", tensor("output.weight", {576, 1000}), grouped), "q8_0");
  EXPECT_EQ(chosen("mxfp4", tensor("blk.0.ffn_up_exps.weight", {512, 256, 8})), "mxfp4");
  EXPECT_EQ(chosen("mxfp4", tensor("blk.0.attn_q.weight", {512, 512})), "q8_0");
  EXPECT_EQ(chosen("mxfp4", output, grouped), "q8_0");
}

TEST(Recipes, PureIsOneFormat) {
  for (const auto* name : {"output.weight", "token_embd.weight", "blk.0.attn_v.weight", "blk.0.ffn_up.weight"}) {
    EXPECT_EQ(chosen("q4_k_m", tensor(name, {512, 256}), grouped, true), "q4_k");
    EXPECT_EQ(chosen("mxfp4", tensor(name, {512, 256}), grouped, true), "mxfp4");
  }
}

TEST(Recipes, GiveRowsWhatTheyCanHave) {
  const auto up = [](std::int64_t row) { return tensor("blk.5.ffn_up.weight", {row, 64}); };
  EXPECT_EQ(chosen("q4_k_m", up(576)), "q5_0 for q4_k");
  EXPECT_EQ(chosen("q5_k_m", up(576)), "q5_1 for q5_k");
  EXPECT_EQ(chosen("q6_k", up(576)), "q8_0 for q6_k");
  EXPECT_EQ(chosen("q3_k_s", up(576)), "q4_0 for q3_k");
  EXPECT_EQ(chosen("q2_k", up(576)), "q4_0 for q2_k");
  EXPECT_EQ(chosen("iq4_xs", up(576)), "iq4_nl for iq4_xs");
  EXPECT_EQ(chosen("q4_k_m", up(100)), "f16 for q4_k");
  EXPECT_EQ(chosen("q8_0", up(100)), "f16 for q8_0");
  EXPECT_EQ(chosen("bf16", up(100)), "bf16");
}

TEST(Recipes, KeepWhatIsSmall) {
  EXPECT_EQ(chosen("q4_k_m", tensor("blk.0.attn_norm.weight", {512}, "f32")), "f32");
  EXPECT_EQ(chosen("q4_k_m", tensor("blk.0.attn_norm.weight", {512}, "bf16")), "f32");
  EXPECT_EQ(chosen("f16", tensor("blk.0.attn_q.bias", {512}, "f32")), "f32");
  EXPECT_EQ(chosen("q4_k_m", tensor("blk.0.attn_q_norm.weight", {64, 4}, "f16")), "f32");
  EXPECT_EQ(chosen("q4_k_m", tensor("blk.0.ffn_gate_inp.weight", {512, 8}, "f32")), "f32");
  EXPECT_EQ(chosen("q4_k_m", tensor("blk.0.ffn_gate_inp.weight", {512, 8}, "bf16")), "bf16");
  EXPECT_EQ(chosen("q4_k_m", tensor("blk.0.ffn_up_exps.bias", {512, 8}, "f32")), "f32");
  EXPECT_EQ(chosen("q4_k_m", tensor("blk.0.attn_q.weight", {512, 1}, "f16")), "f32") << "a vector";
  EXPECT_EQ(chosen("q4_k_m", tensor("scalar.weight", {}, "f32")), "f32");
}

TEST(RecipeModel, IsReadFromMetadata) {
  const auto model_of = [](const GgufBuilder& builder) {
    const std::string bytes = builder.build();
    return recipe_model(Gguf::read(MemorySource("made", std::as_bytes(std::span(bytes)))));
  };
  GgufBuilder full;
  full.add("general.architecture", "x")
      .add("x.block_count", std::uint32_t{12})
      .add("x.expert_count", std::uint32_t{8})
      .add("x.attention.head_count", std::uint32_t{32})
      .add("x.attention.head_count_kv", std::vector<std::int32_t>{8, 0, 8});
  const RecipeModel model = model_of(full);
  EXPECT_EQ(model.layers, 12);
  EXPECT_EQ(model.experts, 8);
  EXPECT_EQ(model.heads_per_key_head, 4);
  EXPECT_TRUE(model.tied);
  full.tensor("output.weight", {1}, 0, std::string(4, '\0'));
  EXPECT_FALSE(model_of(full).tied);
  const RecipeModel empty = model_of(GgufBuilder());
  EXPECT_EQ(empty.layers, 0);
  EXPECT_EQ(empty.heads_per_key_head, 1);
  GgufBuilder zero;
  zero.add("general.architecture", "x").add("x.attention.head_count", std::uint32_t{4});
  zero.add("x.attention.head_count_kv", std::uint32_t{0});
  EXPECT_EQ(model_of(zero).heads_per_key_head, 1);
}

}  // namespace
}  // namespace headrace::models
