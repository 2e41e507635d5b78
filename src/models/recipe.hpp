// Recipes of `headrace quantize`: which tensor of a GGUF model gets which Format, by the names that the field uses
// ("q4_k_m"). What a name means is what llama.cpp writes under it, so that sizes and qualities compare.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "formats/format.hpp"
#include "formats/gguf.hpp"

namespace headrace::models {

struct Recipe {
  std::string_view name;
  std::uint32_t file_type = 0;  ///< of the key general.file_type
  std::string_view base;        ///< the Format of tensors that no rule names
};

/// All recipes, the ones of larger files first.
std::span<const Recipe> recipe_table();

/// The recipe of that name in any case ("Q4_K_M"), or nullptr. q3_k, q4_k and q5_k stand for q3_k_m, q4_k_m, q5_k_m.
const Recipe* find_recipe(std::string_view name);

/// What the rules ask about a model.
struct RecipeModel {
  std::int64_t layers = 0;
  std::int64_t experts = 0;
  std::int64_t heads_per_key_head = 1;  ///< query heads that share a key/value head
  bool tied = true;                     ///< the embedding is the output matrix too
};

/// Of a GGUF file, whatever its architecture; keys that are missing leave the defaults.
RecipeModel recipe_model(const formats::Gguf& gguf);

struct FormatChoice {
  const formats::Format* format = nullptr;
  const formats::Format* wanted =
      nullptr;  ///< what the recipe says, if rows of the tensor cannot have it; else nullptr
};

/// The Format for a tensor. Those that take part in no large product (norms, biases, routers of experts, anything of
/// fewer than two dimensions) keep their own, but norms and vectors in f16 or bf16 become f32. With `pure`, all others
/// get the recipe's own Format without its rules. Throws InputError if a Format of the file is none of ours.
FormatChoice choose_format(const Recipe& recipe, bool pure, const RecipeModel& model, const formats::Gguf& gguf,
                           const formats::GgufTensor& tensor);

}  // namespace headrace::models
