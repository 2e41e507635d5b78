#include "models/recipe.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace headrace::models {

namespace {

using formats::Format;
using formats::Gguf;
using formats::GgufTensor;

constexpr Recipe recipes[] = {
    {"f32", 0, "f32"},      {"f16", 1, "f16"},        {"bf16", 32, "bf16"},     {"q8_0", 7, "q8_0"},
    {"q6_k", 18, "q6_k"},   {"q5_k_m", 17, "q5_k"},   {"q5_k_s", 16, "q5_k"},   {"q5_1", 9, "q5_1"},
    {"q5_0", 8, "q5_0"},    {"q4_k_m", 15, "q4_k"},   {"q4_k_s", 14, "q4_k"},   {"q4_1", 3, "q4_1"},
    {"q4_0", 2, "q4_0"},    {"iq4_nl", 25, "iq4_nl"}, {"iq4_xs", 30, "iq4_xs"}, {"mxfp4", 38, "q8_0"},
    {"q3_k_l", 13, "q3_k"}, {"q3_k_m", 12, "q3_k"},   {"q3_k_s", 11, "q3_k"},   {"q2_k", 10, "q2_k"},
    {"q2_k_s", 21, "q2_k"},
};

enum class Role { output, embedding, values, keys, attention_output, ffn_down, other };

/// Where in a model a tensor stands.
struct Place {
  RecipeModel model;
  std::int64_t layer = 0;
  bool stacked = false;  ///< the matrices of several experts in one tensor
};

using Where = bool (*)(const Place& place);
bool anywhere(const Place& /*place*/) { return true; }
bool key_heads_are_shared(const Place& place) { return place.model.heads_per_key_head >= 4; }
bool eight_experts(const Place& place) { return place.model.experts == 8; }
bool not_eight_experts(const Place& place) { return !eight_experts(place); }
bool experts(const Place& place) { return place.stacked; }
bool first_two(const Place& place) { return place.layer < 2; }
bool first_four(const Place& place) { return place.layer < 4; }
bool first_eighth(const Place& place) { return place.layer < place.model.layers / 8; }
bool first_sixteenth(const Place& place) { return place.layer < place.model.layers / 16; }
/// The first and last eighth of the layers, and every third between.
bool more_bits(const Place& place) {
  const std::int64_t eighth = place.model.layers / 8;
  return place.layer < eighth || place.layer >= 7 * place.model.layers / 8 || (place.layer - eighth) % 3 == 2;
}

struct Rule {
  std::string_view recipe;
  std::optional<Role> role;  ///< nothing: any but the output
  Where where;
  std::string_view format;
};

/// The first that fits counts.
constexpr Rule rules[] = {
    {"q5_k_m", Role::values, more_bits, "q6_k"},
    {"q5_k_m", Role::ffn_down, more_bits, "q6_k"},

    {"q4_k_m", Role::values, more_bits, "q6_k"},
    {"q4_k_m", Role::ffn_down, more_bits, "q6_k"},
    {"q4_k_m", Role::attention_output, eight_experts, "q5_k"},

    {"q4_k_s", Role::values, first_four, "q5_k"},
    {"q4_k_s", Role::ffn_down, first_eighth, "q5_k"},
    {"q4_k_s", Role::attention_output, eight_experts, "q5_k"},

    {"iq4_nl", Role::values, key_heads_are_shared, "q5_k"},
    {"iq4_nl", Role::ffn_down, first_eighth, "q5_k"},
    {"iq4_nl", Role::attention_output, eight_experts, "q5_k"},

    {"iq4_xs", Role::values, key_heads_are_shared, "q5_k"},
    {"iq4_xs", Role::ffn_down, first_eighth, "q5_k"},
    {"iq4_xs", Role::attention_output, eight_experts, "q5_k"},

    {"mxfp4", std::nullopt, experts, "mxfp4"},

    {"q3_k_l", Role::values, anywhere, "q5_k"},
    {"q3_k_l", Role::ffn_down, anywhere, "q5_k"},
    {"q3_k_l", Role::attention_output, not_eight_experts, "q5_k"},

    {"q3_k_m", Role::values, first_two, "q5_k"},
    {"q3_k_m", Role::values, anywhere, "q4_k"},
    {"q3_k_m", Role::ffn_down, first_sixteenth, "q5_k"},
    {"q3_k_m", Role::ffn_down, anywhere, "q4_k"},
    {"q3_k_m", Role::attention_output, eight_experts, "q5_k"},
    {"q3_k_m", Role::attention_output, anywhere, "q4_k"},

    {"q3_k_s", Role::attention_output, eight_experts, "q5_k"},

    {"q2_k", Role::values, key_heads_are_shared, "q4_k"},
    {"q2_k", Role::values, anywhere, "q3_k"},
    {"q2_k", Role::ffn_down, anywhere, "q3_k"},
    {"q2_k", Role::attention_output, eight_experts, "q5_k"},
    {"q2_k", Role::attention_output, anywhere, "q3_k"},

    {"q2_k_s", Role::values, key_heads_are_shared, "q4_k"},
    {"q2_k_s", Role::ffn_down, first_eighth, "q4_k"},
};

/// What takes the place of a Format whose blocks do not fill a tensor's rows: about as many bits, in blocks of 32.
struct Substitute {
  std::string_view format;
  std::string_view by;
};
constexpr Substitute substitutes[] = {
    {"q2_k", "q4_0"}, {"q3_k", "q4_0"}, {"q4_k", "q5_0"}, {"q5_k", "q5_1"}, {"q6_k", "q8_0"}, {"iq4_xs", "iq4_nl"},
};

/// Matrices that are small, or that decide more than they weigh.
constexpr std::string_view kept_parts[] = {
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "attn_rel_b.weight",
    "position_embd",
    "token_types.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
};

const Format& format_named(std::string_view name) {
  const Format* format = formats::find_format(name);
  require(format != nullptr, "recipe: a Format of the table is missing");
  return *format;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// Dimensions up to the last that is not 1.
std::size_t rank_of(const GgufTensor& tensor) {
  std::size_t rank = tensor.dimensions.size();
  while (rank > 0 && tensor.dimensions[rank - 1] == 1) --rank;
  return rank;
}

bool is_kept(const GgufTensor& tensor) {
  const std::string_view name = tensor.name;
  return rank_of(tensor) < 2 || !name.ends_with("weight") ||
         std::ranges::any_of(kept_parts, [&](std::string_view part) { return contains(name, part); });
}

Role role_of(std::string_view name) {
  if (name == "output.weight") return Role::output;
  if (name == "token_embd.weight") return Role::embedding;
  for (const std::string_view values : {"attn_qkv.weight", "attn_kv_b.weight", "attn_v.weight"}) {
    if (contains(name, values)) return Role::values;
  }
  if (contains(name, "attn_k.weight")) return Role::keys;
  if (contains(name, "attn_output.weight")) return Role::attention_output;
  if (contains(name, "ffn_down")) return Role::ffn_down;
  return Role::other;
}

/// N of "blk.N.", or 0.
std::int64_t layer_of(std::string_view name) {
  constexpr std::string_view head = "blk.";
  std::int64_t layer = 0;
  if (name.starts_with(head)) std::from_chars(name.data() + head.size(), name.data() + name.size(), layer);
  return layer;
}

const Format& format_of_output(const Format& base, const GgufTensor& tensor) {
  const std::int64_t row = tensor.dimensions[0];
  return format_named(base.name == "q8_0" || row % base.block_elements != 0 ? "q8_0" : "q6_k");
}

const Format& format_by_rules(const Recipe& recipe, const RecipeModel& model, const GgufTensor& tensor) {
  const Format& base = format_named(recipe.base);
  if (base.kind == Format::Kind::floating) return base;
  const Role role = role_of(tensor.name);
  if (role == Role::output || (role == Role::embedding && model.tied)) return format_of_output(base, tensor);
  const Place place{model, layer_of(tensor.name), rank_of(tensor) > 2};
  std::string_view chosen = recipe.base;
  for (const Rule& rule : rules) {
    if (rule.recipe == recipe.name && (!rule.role || *rule.role == role) && rule.where(place)) {
      chosen = rule.format;
      break;
    }
  }
  // The values of models with 80 layers and 8 heads to a key head are small, and so are those of 8 experts' models.
  const bool values_are_small = model.layers == 80 && model.heads_per_key_head > 1;
  if (role == Role::values && values_are_small && (chosen == "q3_k" || chosen == "q4_k")) chosen = "q5_k";
  if ((role == Role::values || role == Role::keys) && eight_experts(place)) chosen = "q8_0";
  return format_named(chosen);
}

/// `wanted`, or what takes its place if its blocks do not fill the rows.
FormatChoice fitted(const Format& wanted, const GgufTensor& tensor) {
  const std::int64_t row = tensor.dimensions[0];
  if (row % wanted.block_elements == 0) return {&wanted, nullptr};
  const auto* found = std::ranges::find(substitutes, wanted.name, &Substitute::format);
  if (found != std::end(substitutes)) {
    const Format& substitute = format_named(found->by);
    if (row % substitute.block_elements == 0) return {&substitute, &wanted};
  }
  return {&format_named("f16"), &wanted};
}

std::int64_t first_integer(const Gguf& gguf, const std::string& key, std::int64_t fallback) {
  const formats::GgufEntry* entry = gguf.find(key);
  if (entry == nullptr) return fallback;
  if (entry->type != formats::GgufType::array) return gguf.i64(key);
  const std::vector<std::int64_t> values = gguf.integers(key);  // one a layer
  return values.empty() ? fallback : values.front();
}

}  // namespace

std::span<const Recipe> recipe_table() { return recipes; }

const Recipe* find_recipe(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  if (lower == "q3_k" || lower == "q4_k" || lower == "q5_k") lower += "_m";
  const auto* found = std::ranges::find(recipes, lower, &Recipe::name);
  return found == std::end(recipes) ? nullptr : found;
}

RecipeModel recipe_model(const Gguf& gguf) {
  const std::string head = gguf.string("general.architecture", "") + ".";
  RecipeModel model;
  model.layers = first_integer(gguf, head + "block_count", 0);
  model.experts = first_integer(gguf, head + "expert_count", 0);
  const std::int64_t heads = first_integer(gguf, head + "attention.head_count", 1);
  const std::int64_t key_heads = first_integer(gguf, head + "attention.head_count_kv", heads);
  if (key_heads > 0) model.heads_per_key_head = heads / key_heads;
  model.tied = gguf.find_tensor("output.weight") == nullptr;
  return model;
}

FormatChoice choose_format(const Recipe& recipe, bool pure, const RecipeModel& model, const Gguf& gguf,
                           const GgufTensor& tensor) {
  const Format& own = gguf.format(tensor);
  if (is_kept(tensor)) {
    const bool is_vector = rank_of(tensor) < 2 || contains(tensor.name, "_norm.weight");
    return {is_vector && own.kind == Format::Kind::floating ? &format_named("f32") : &own, nullptr};
  }
  if (pure) {
    const Format* named = formats::find_format(recipe.name);
    return fitted(named != nullptr ? *named : format_named(recipe.base), tensor);
  }
  return fitted(format_by_rules(recipe, model, tensor), tensor);
}

}  // namespace headrace::models
