// The header of a safetensors file: where each tensor lies. Format: the README of huggingface/safetensors (8 bytes of
// header length, a JSON object, the data without holes). Reads the header only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "formats/byte_source.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

struct SafetensorsTensor {
  std::string name;
  std::string dtype;                ///< as the file spells it: "BF16"
  const Format* format = nullptr;   ///< nullptr if the dtype is none of our Formats
  std::vector<std::int64_t> shape;  ///< the dimension along a row last; may hold zeros; empty for a scalar
  std::int64_t elements = 1;
  std::uint64_t offset = 0;  ///< of its first byte in the file
  std::uint64_t bytes = 0;   ///< offset + bytes lies within the file
};

/// A parsed header. Everything in it has been checked against the file's size: the header's length, shapes and their
/// products, ranges (as long as shape and dtype say; together all of the data, no overlap, no hole), unique names.
/// What is kept in memory is at most about 40 times the header's bytes while it is parsed.
class Safetensors {
 public:
  static constexpr std::uint64_t max_header_bytes = 100'000'000;  ///< the reference implementation's limit
  static constexpr std::size_t max_dimensions = 8;

  /// Reads and checks a header. Throws InputError naming file, tensor, field, expected and found.
  static Safetensors read(const ByteSource& source);
  static Safetensors read(const File& file) { return read(FileSource(file)); }

  [[nodiscard]] const std::string& file_name() const noexcept { return file_name_; }
  /// "__metadata__", free text of the writer.
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
  /// Sorted by name.
  [[nodiscard]] std::span<const SafetensorsTensor> tensors() const noexcept { return tensors_; }
  /// nullptr if there is none of this name.
  [[nodiscard]] const SafetensorsTensor* find_tensor(std::string_view name) const;

 private:
  friend class SafetensorsParser;
  std::string file_name_;
  std::map<std::string, std::string> metadata_;
  std::vector<SafetensorsTensor> tensors_;
};

/// The weight_map of a model.safetensors.index.json: tensor -> file in the same directory. `name` is the file's, for
/// messages. Throws InputError if a file is no plain name, such as "../x.safetensors".
std::map<std::string, std::string, std::less<>> parse_safetensors_index(const std::string& name, std::string_view text);

}  // namespace headrace::formats
