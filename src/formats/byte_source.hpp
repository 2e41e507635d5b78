// Where a parser's bytes come from: a file, or memory (tests, fuzzing). Parsers read; they never map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/file.hpp"

namespace headrace::formats {

class ByteSource {
 public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;

  /// For messages: the path of the file.
  [[nodiscard]] virtual const std::string& name() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
  /// Fills `out` from `offset`. Throws InputError on a short read, ResourceError on an I/O error.
  virtual void read(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

/// The bytes of a File, which must outlive the source.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(const File& file) : file_(file) {}
  [[nodiscard]] const std::string& name() const noexcept override { return file_.path(); }
  [[nodiscard]] std::uint64_t size() const noexcept override { return file_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override { file_.read(offset, out); }

 private:
  const File& file_;
};

/// Bytes in memory, which must outlive the source.
class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string name, std::span<const std::byte> bytes) : name_(std::move(name)), bytes_(bytes) {}
  [[nodiscard]] const std::string& name() const noexcept override { return name_; }
  [[nodiscard]] std::uint64_t size() const noexcept override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    require(offset <= bytes_.size() && out.size() <= bytes_.size() - offset, "MemorySource: read past the end");
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
  }

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

}  // namespace headrace::formats
