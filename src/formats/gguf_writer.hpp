// Writes GGUF version 3: metadata of any type, the tensor table, and the tensors' bytes as they come, piece by piece.
// Format: the GGUF page of ggml's documentation.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/output_file.hpp"
#include "formats/format.hpp"
#include "formats/gguf.hpp"

namespace headrace::formats {

/// An entry of metadata, of the type that the value has; to be copied from a file, take Gguf::entries() as they are.
GgufEntry gguf_entry(std::string_view key, bool value);
GgufEntry gguf_entry(std::string_view key, std::uint32_t value);
GgufEntry gguf_entry(std::string_view key, std::uint64_t value);
GgufEntry gguf_entry(std::string_view key, float value);
GgufEntry gguf_entry(std::string_view key, std::string_view value);
inline GgufEntry gguf_entry(std::string_view key, const char* value) {
  return gguf_entry(key, std::string_view(value));
}
GgufEntry gguf_entry(std::string_view key, StringArray values);
GgufEntry gguf_entry(std::string_view key, std::span<const float> values);
GgufEntry gguf_entry(std::string_view key, std::span<const std::int32_t> values);

/// A tensor to be written.
struct GgufNewTensor {
  std::string name;
  std::vector<std::int64_t> dimensions;  ///< as in the file: the one along a row first; all > 0; empty for a scalar
  const Format* format = nullptr;
};

/// All of a file but its tensors' bytes.
struct GgufContents {
  std::vector<GgufEntry> entries;
  std::vector<GgufNewTensor> tensors;

  /// Replaces the entry of that key, or appends it.
  void set(GgufEntry entry);
  /// Removes the entry of that key, if there is one.
  void remove(std::string_view key);
};

class GgufWriter {
 public:
  /// Opens `path` as OutputFile does, makes room for the whole file, and writes the header. Tensors lie in the order of
  /// `contents`, at multiples of its general.alignment or else of 32. Throws ResourceError as OutputFile, and
  /// InputError, naming key or tensor, for what no reader would take: two equal keys or names, names that are too long,
  /// an alignment that is no power of two, dimensions below 1 or too many, rows that no whole blocks fill.
  GgufWriter(std::string path, const GgufContents& contents);

  /// The size that the file will have.
  [[nodiscard]] std::uint64_t file_bytes() const noexcept { return file_bytes_; }

  /// The next bytes of the tensors' data, in the order of the tensors; a piece may end anywhere, also beyond a tensor.
  /// Throws ResourceError, and InternalError beyond the last tensor.
  void write(std::span<const std::byte> bytes);

  /// Gives the file its name. Throws ResourceError, and InternalError if bytes are missing.
  void finish();

 private:
  void pad_to(std::uint64_t offset);

  /// Where a tensor lies in the file.
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  OutputFile file_;
  std::vector<Place> places_;
  std::size_t next_ = 0;  ///< the tensor that is being written
  std::uint64_t file_bytes_ = 0;
};

}  // namespace headrace::formats
