#include "formats/hf_config.hpp"

#include <unistd.h>

#include "base/file.hpp"

namespace headrace::formats {

namespace {

std::optional<JsonField> find_in(JsonField field, std::string_view path) {
  for (;;) {
    const std::size_t dot = path.find('.');
    std::optional<JsonField> next = field.find(path.substr(0, dot));
    if (!next || dot == std::string_view::npos) return next;
    field = *std::move(next);
    path.remove_prefix(dot + 1);
  }
}

std::vector<std::int64_t> integers_of(const JsonField& field) {
  if (!field.json().is_array()) return {field.i64()};
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < field.size(); ++i) values.push_back(field[i].i64());
  return values;
}

}  // namespace

HfConfig HfConfig::read(const std::string& directory) {
  const std::string name = directory + "/config.json";
  const std::string generation = directory + "/generation_config.json";
  const bool has_generation = ::access(generation.c_str(), F_OK) == 0;
  return parse(name, read_text(name, max_bytes), has_generation ? read_text(generation, max_bytes) : "");
}

HfConfig HfConfig::parse(const std::string& name, std::string_view config, std::string_view generation) {
  Documents documents;
  documents.name = name;
  documents.config = parse_json(name, config);
  documents.generation_name = name.substr(0, name.rfind('/') + 1) + "generation_config.json";
  documents.generation =
      generation.empty() ? nlohmann::json::object() : parse_json(documents.generation_name, generation);
  JsonField(documents.name, documents.config).require_object();
  JsonField(documents.generation_name, documents.generation).require_object();
  HfConfig result;
  result.documents_ = std::make_unique<const Documents>(std::move(documents));
  return result;
}

std::optional<JsonField> HfConfig::find(std::string_view path) const {
  return find_in(JsonField(documents_->name, documents_->config), path);
}

std::optional<std::int64_t> HfConfig::integer(std::string_view path) const {
  const auto field = find(path);
  return field ? std::optional(field->i64()) : std::nullopt;
}

std::optional<double> HfConfig::number(std::string_view path) const {
  const auto field = find(path);
  return field ? std::optional(field->number()) : std::nullopt;
}

std::optional<bool> HfConfig::boolean(std::string_view path) const {
  const auto field = find(path);
  return field ? std::optional(field->boolean()) : std::nullopt;
}

std::optional<std::string> HfConfig::string(std::string_view path) const {
  const auto field = find(path);
  return field ? std::optional(field->string()) : std::nullopt;
}

std::optional<std::vector<std::int64_t>> HfConfig::integers(std::string_view path) const {
  const auto field = find(path);
  return field ? std::optional(integers_of(*field)) : std::nullopt;
}

std::vector<std::int64_t> HfConfig::eos_token_ids() const {
  const JsonField generation(documents_->generation_name, documents_->generation);
  if (const auto field = generation.find("eos_token_id")) return integers_of(*field);
  return integers("eos_token_id").value_or(std::vector<std::int64_t>{});
}

}  // namespace headrace::formats
