// The configuration of a model in a directory as transformers saves it: config.json, and generation_config.json beside
// it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json.hpp"

namespace headrace::formats {

/// Accessors take dotted paths ("rope_parameters.rope_theta"); there is nothing if a step of it is missing or null.
/// They throw InputError naming file, path, expected and found if a value is of another type.
class HfConfig {
 public:
  static constexpr std::uint64_t max_bytes = 16'000'000;

  /// Reads DIRECTORY/config.json, which must be there, and generation_config.json. Throws InputError.
  static HfConfig read(const std::string& directory);
  /// The same of texts; `generation` may be empty. `name` is that of config.json, for messages.
  static HfConfig parse(const std::string& name, std::string_view config, std::string_view generation = "");

  [[nodiscard]] const std::string& file_name() const noexcept { return documents_->name; }

  [[nodiscard]] std::optional<JsonField> find(std::string_view path) const;
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view path) const;
  [[nodiscard]] std::optional<double> number(std::string_view path) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view path) const;
  [[nodiscard]] std::optional<std::string> string(std::string_view path) const;
  /// Of an array, or one alone.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(std::string_view path) const;

  /// The tokens that end a generation: generation_config.json's, else config.json's.
  [[nodiscard]] std::vector<std::int64_t> eos_token_ids() const;

 private:
  /// Fields point into them, so that they must not move.
  struct Documents {
    std::string name;
    nlohmann::json config;
    std::string generation_name;
    nlohmann::json generation;
  };
  std::unique_ptr<const Documents> documents_;
};

}  // namespace headrace::formats
