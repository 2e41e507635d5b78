// The header of a GGUF file (versions 2 and 3, little endian): typed metadata, and where each tensor lies.
// Format: the GGUF page of ggml's documentation. Reads the header only; weights are read by whoever needs them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/file.hpp"
#include "base/string_array.hpp"
#include "formats/byte_source.hpp"
#include "formats/format.hpp"

namespace headrace::formats {

/// Types of metadata values, with the ids that the file uses.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, array, u64, i64, f64 };

/// "u32", "string" ...
std::string_view to_string(GgufType type);

/// An array of metadata. `items` holds numbers and booleans as the file's bytes, strings, or arrays.
struct GgufArray {
  GgufType element = GgufType::u8;
  std::uint64_t count = 0;
  std::variant<std::vector<std::byte>, StringArray, std::vector<GgufArray>> items;
};

/// Unsigned integers as u64, signed ones as i64, f32 and f64 as double.
using GgufValue = std::variant<std::uint64_t, std::int64_t, double, bool, std::string, GgufArray>;

struct GgufEntry {
  std::string key;
  std::uint64_t offset = 0;  ///< of the entry in the file, for messages
  GgufType type = GgufType::u8;
  GgufValue value;
};

struct GgufTensor {
  std::string name;
  std::uint64_t info_offset = 0;         ///< of its line in the tensor table, for messages
  std::vector<std::int64_t> dimensions;  ///< as in the file: the one along a row first; all > 0; empty for a scalar
  std::int64_t elements = 1;
  std::uint32_t gguf_type = 0;
  const Format* format = nullptr;      ///< nullptr if the type is none of ours: see Gguf::format
  std::uint64_t offset = 0;            ///< of its first byte in the file
  std::optional<std::uint64_t> bytes;  ///< known with the Format; then offset + bytes lies within the file
};

/// A parsed header. Everything in it has been checked against the file's size: counts, lengths, dimension products,
/// tensor ranges (inside the file, not overlapping, aligned), unique keys and names. What is kept in memory is at most
/// about 30 times the header's bytes, and a header is at most `max_header_bytes`.
///
/// Accessors throw InputError naming the file, the key, its offset, what was expected and what was found.
class Gguf {
 public:
  static constexpr std::uint64_t max_header_bytes = std::uint64_t{1} << 30;
  static constexpr std::uint64_t max_name_bytes = 65535;  ///< of a key or a tensor's name; the format's own limit
  static constexpr std::uint32_t max_dimensions = 8;
  static constexpr int max_array_depth = 4;

  /// Reads and checks a header. Throws InputError if anything in it is wrong or missing.
  static Gguf read(const ByteSource& source);
  static Gguf read(const File& file) { return read(FileSource(file)); }

  [[nodiscard]] const std::string& file_name() const noexcept { return file_name_; }
  [[nodiscard]] std::uint32_t version() const noexcept { return version_; }
  [[nodiscard]] std::uint64_t alignment() const noexcept { return alignment_; }
  [[nodiscard]] std::uint64_t data_offset() const noexcept { return data_offset_; }

  /// Metadata in the file's order, and by key (nullptr if it is missing).
  [[nodiscard]] std::span<const GgufEntry> entries() const noexcept { return entries_; }
  [[nodiscard]] const GgufEntry* find(std::string_view key) const;
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }

  /// Any integer type that holds a value >= 0; any integer type that fits; f32 or f64; and so on.
  [[nodiscard]] const std::string& string(std::string_view key) const;
  [[nodiscard]] std::uint64_t u64(std::string_view key) const;
  [[nodiscard]] std::int64_t i64(std::string_view key) const;
  [[nodiscard]] float f32(std::string_view key) const;
  [[nodiscard]] bool boolean(std::string_view key) const;

  /// The same, or `fallback` if the key is missing. A value of a wrong type is still an error.
  [[nodiscard]] std::string string(std::string_view key, std::string_view fallback) const;
  [[nodiscard]] std::uint64_t u64(std::string_view key, std::uint64_t fallback) const;
  [[nodiscard]] std::int64_t i64(std::string_view key, std::int64_t fallback) const;
  [[nodiscard]] float f32(std::string_view key, float fallback) const;
  [[nodiscard]] bool boolean(std::string_view key, bool fallback) const;

  /// Arrays: of strings; of f32 or f64; of any integer type (each must fit an i64); of booleans.
  [[nodiscard]] const StringArray& strings(std::string_view key) const;
  [[nodiscard]] std::vector<float> floats(std::string_view key) const;
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view key) const;
  [[nodiscard]] std::vector<bool> booleans(std::string_view key) const;

  /// Tensors in the file's order, and by name (nullptr, or InputError, if it is missing).
  [[nodiscard]] std::span<const GgufTensor> tensors() const noexcept { return tensors_; }
  [[nodiscard]] const GgufTensor* find_tensor(std::string_view name) const;
  [[nodiscard]] const GgufTensor& tensor(std::string_view name) const;
  /// The Format of a tensor; throws InputError naming the type if it is none of ours.
  [[nodiscard]] const Format& format(const GgufTensor& tensor) const;

 private:
  friend class GgufParser;

  [[nodiscard]] const GgufEntry& entry(std::string_view key, std::string_view expected) const;
  [[nodiscard]] const GgufArray& array(std::string_view key, std::string_view expected) const;
  [[noreturn]] void fail_type(const GgufEntry& entry, std::string_view expected) const;

  std::string file_name_;
  std::uint32_t version_ = 0;
  std::uint64_t alignment_ = 32;
  std::uint64_t data_offset_ = 0;
  std::vector<GgufEntry> entries_;
  std::vector<GgufTensor> tensors_;
  std::vector<std::size_t> entries_by_key_;   ///< indices, sorted
  std::vector<std::size_t> tensors_by_name_;  ///< indices, sorted
};

/// The name of a GGUF tensor type, ours or not, for messages: "q4_k (GGUF type 12)".
std::string gguf_type_name(std::uint32_t gguf_type);

}  // namespace headrace::formats
