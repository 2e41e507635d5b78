// A file opened for reading. Files are read, never mapped: one that shrinks under a map kills the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace headrace {

class File {
 public:
  /// Opens a regular file. Throws InputError if it is missing or is no regular file, ResourceError if it may not be
  /// read.
  explicit File(std::string path);
  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Size in bytes when the file was opened.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  /// Fills `out` from `offset`. Thread-safe. Throws InputError on a short read (naming how much is missing), and
  /// ResourceError on an I/O error.
  void read(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// The whole of a file or, for "-", of standard input. Throws as File does, and InputError beyond `limit_bytes`.
std::string read_text(const std::string& path, std::uint64_t limit_bytes);

/// Writes `path` whole or not at all, as OutputFile does. Throws ResourceError.
void write_file(const std::string& path, std::string_view bytes);

}  // namespace headrace
