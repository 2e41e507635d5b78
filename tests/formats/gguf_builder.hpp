// Writes small GGUF files for tests: metadata of all types, tensors, and the faults that a writer would not make.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace headrace::formats::testing {

/// `value` as the file's bytes.
template <class T>
  requires std::is_arithmetic_v<T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}
inline std::string raw(std::string_view text) { return raw(std::uint64_t{text.size()}).append(text); }

template <class T>
struct GgufTypeId;
template <>
struct GgufTypeId<std::uint8_t> {
  static constexpr std::uint32_t value = 0;
};
template <>
struct GgufTypeId<std::int8_t> {
  static constexpr std::uint32_t value = 1;
};
template <>
struct GgufTypeId<std::uint16_t> {
  static constexpr std::uint32_t value = 2;
};
template <>
struct GgufTypeId<std::int16_t> {
  static constexpr std::uint32_t value = 3;
};
template <>
struct GgufTypeId<std::uint32_t> {
  static constexpr std::uint32_t value = 4;
};
template <>
struct GgufTypeId<std::int32_t> {
  static constexpr std::uint32_t value = 5;
};
template <>
struct GgufTypeId<float> {
  static constexpr std::uint32_t value = 6;
};
template <>
struct GgufTypeId<bool> {
  static constexpr std::uint32_t value = 7;
};
template <>
struct GgufTypeId<std::string> {
  static constexpr std::uint32_t value = 8;
};
template <class T>
struct GgufTypeId<std::vector<T>> {
  static constexpr std::uint32_t value = 9;
};
template <>
struct GgufTypeId<std::uint64_t> {
  static constexpr std::uint32_t value = 10;
};
template <>
struct GgufTypeId<std::int64_t> {
  static constexpr std::uint32_t value = 11;
};
template <>
struct GgufTypeId<double> {
  static constexpr std::uint32_t value = 12;
};

/// An array: element type, count, items. Nests.
template <class T>
std::string raw(const std::vector<T>& items) {
  std::string bytes = raw(GgufTypeId<T>::value) + raw(std::uint64_t{items.size()});
  for (const auto& item : items) bytes += raw(static_cast<const T&>(item));
  return bytes;
}

/// Tensor types of a file, for readable tests.
inline constexpr std::uint32_t type_f32 = 0, type_f16 = 1, type_q4_0 = 2, type_q4_1 = 3, type_q8_0 = 8, type_bf16 = 30;

class GgufBuilder {
 public:
  explicit GgufBuilder(std::uint32_t version = 3) : version_(version) {}

  /// Metadata of the type T: a number, bool, std::string, or a (nested) std::vector of them.
  template <class T>
  GgufBuilder& add(std::string_view key, const T& value) {
    return add_raw(key, GgufTypeId<T>::value, raw(value));
  }
  GgufBuilder& add(std::string_view key, const char* value) { return add(key, std::string(value)); }

  /// An entry with any type id and bytes: for faults.
  GgufBuilder& add_raw(std::string_view key, std::uint32_t type, std::string_view bytes) {
    entries_.push_back(raw(key) + raw(type).append(bytes));
    return *this;
  }

  /// Writes general.alignment and lays the tensors out by it.
  GgufBuilder& alignment(std::uint32_t bytes) {
    alignment_ = bytes;
    return add("general.alignment", bytes);
  }

  /// A tensor behind the ones before it; `dimensions` as in the file, the one along a row first.
  GgufBuilder& tensor(std::string_view name, const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                      std::string_view bytes) {
    data_.resize((data_.size() + alignment_ - 1) / alignment_ * alignment_);
    tensor_at(name, dimensions, type, data_.size());
    data_ += bytes;
    return *this;
  }
  GgufBuilder& tensor_f32(std::string_view name, const std::vector<std::uint64_t>& dimensions,
                          std::span<const float> values) {
    return tensor(name, dimensions, type_f32,
                  std::string_view(reinterpret_cast<const char*>(values.data()), values.size_bytes()));
  }

  /// A line of the tensor table without data: for faults.
  GgufBuilder& tensor_at(std::string_view name, const std::vector<std::uint64_t>& dimensions, std::uint32_t type,
                         std::uint64_t offset) {
    std::string line = raw(name) + raw(static_cast<std::uint32_t>(dimensions.size()));
    for (const std::uint64_t dimension : dimensions) line += raw(dimension);
    tensors_.push_back(line + raw(type) + raw(offset));
    return *this;
  }

  /// Other counts than there are: for faults.
  GgufBuilder& claim_tensors(std::uint64_t count) { return claimed_tensors_ = count, claims_tensors_ = true, *this; }
  GgufBuilder& claim_entries(std::uint64_t count) { return claimed_entries_ = count, claims_entries_ = true, *this; }

  /// The header up to the end of the tensor table.
  [[nodiscard]] std::string header() const {
    std::string file = "GGUF" + raw(version_);
    file += raw(claims_tensors_ ? claimed_tensors_ : std::uint64_t{tensors_.size()});
    file += raw(claims_entries_ ? claimed_entries_ : std::uint64_t{entries_.size()});
    for (const auto& entry : entries_) file += entry;
    for (const auto& tensor : tensors_) file += tensor;
    return file;
  }

  [[nodiscard]] std::string build() const {
    std::string file = header();
    if (!data_.empty()) file.resize((file.size() + alignment_ - 1) / alignment_ * alignment_);
    return file + data_;
  }

  void write(const std::string& path) const {
    std::ofstream file(path, std::ios::binary);
    const std::string bytes = build();
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) throw std::runtime_error("cannot write " + path);
  }

 private:
  std::uint32_t version_;
  std::uint64_t alignment_ = 32;
  std::vector<std::string> entries_;
  std::vector<std::string> tensors_;
  std::string data_;
  bool claims_tensors_ = false;
  bool claims_entries_ = false;
  std::uint64_t claimed_tensors_ = 0;
  std::uint64_t claimed_entries_ = 0;
};

}  // namespace headrace::formats::testing
