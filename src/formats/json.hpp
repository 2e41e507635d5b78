// JSON from outside: a strict, bounded parser (nlohmann-json's), and fields that know where they stand, so that an
// error names file and path. For config.json, tokenizer.json and the headers of safetensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace headrace::formats {

inline constexpr int max_json_depth = 32;

/// The value of `text`. `name` is the file's, for messages. What is kept is at most about 40 times the text's bytes.
/// Throws InputError if it is no JSON (RFC 8259; so NaN and Infinity are refused), has a key twice in one object, or is
/// nested deeper than max_json_depth.
nlohmann::json parse_json(const std::string& name, std::string_view text);

/// What a message calls a value: "the number 3", "an object".
std::string describe_json(const nlohmann::json& value);

/// A value within a document, and its path for messages. The document and `file` must outlive it.
///
/// Accessors throw InputError "FILE: PATH: expected ..., found ...".
class JsonField {
 public:
  JsonField(const std::string& file, const nlohmann::json& value, std::string path = "")
      : file_(&file), value_(&value), path_(std::move(path)) {}

  [[nodiscard]] const nlohmann::json& json() const noexcept { return *value_; }
  [[nodiscard]] const std::string& file() const noexcept { return *file_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// A member of an object: nothing if it is missing or null.
  [[nodiscard]] std::optional<JsonField> find(std::string_view key) const;
  [[nodiscard]] JsonField at(std::string_view key) const;
  /// Items of an array.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] JsonField operator[](std::size_t i) const;

  [[nodiscard]] const std::string& string() const;
  [[nodiscard]] std::uint64_t u64() const;
  [[nodiscard]] std::int64_t i64() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] bool boolean() const;
  /// Throws unless it is one.
  void require_object() const;

  [[nodiscard]] std::string string(std::string_view key, std::string_view fallback) const;
  [[nodiscard]] bool boolean(std::string_view key, bool fallback) const;

  /// Throws InputError "FILE: PATH: expected EXPECTED, found ...".
  [[noreturn]] void refuse(std::string_view expected) const;

 private:
  const std::string* file_;
  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace headrace::formats
