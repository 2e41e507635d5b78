// WeightStore: where the bytes of Weights come from. Whoever reads them does not know which store it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"

namespace headrace::stream {

class WeightStore {
 public:
  virtual ~WeightStore() = default;
  /// Bytes of a Weight in its Format's order. Throws InputError if the store has none of this name.
  [[nodiscard]] virtual std::uint64_t bytes(std::string_view weight) const = 0;
  /// Fills `out` from byte `offset` of the Weight. Thread-safe. Throws InputError or ResourceError.
  virtual void read(std::string_view weight, std::uint64_t offset, std::span<std::byte> out) const = 0;
};

/// Weights as ranges of one file.
class FileStore : public WeightStore {
 public:
  /// `file` must outlive the store.
  explicit FileStore(const File& file) : file_(file) {}
  void add(std::string weight, std::uint64_t offset, std::uint64_t bytes);

  [[nodiscard]] std::uint64_t bytes(std::string_view weight) const override;
  void read(std::string_view weight, std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] const Range& find(std::string_view weight) const;

  const File& file_;
  std::map<std::string, Range, std::less<>> ranges_;
};

/// Weights in memory, for tests and for models that are made.
class MemoryStore : public WeightStore {
 public:
  void add(std::string weight, std::vector<std::byte> bytes);

  [[nodiscard]] std::uint64_t bytes(std::string_view weight) const override;
  void read(std::string_view weight, std::uint64_t offset, std::span<std::byte> out) const override;

 private:
  [[nodiscard]] const std::vector<std::byte>& find(std::string_view weight) const;

  std::map<std::string, std::vector<std::byte>, std::less<>> weights_;
};

}  // namespace headrace::stream
