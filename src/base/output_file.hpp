// A file that is written piece by piece and appears whole or not at all: its bytes have no name, or one beside the
// target, until they are synced.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace headrace {

class OutputFile {
 public:
  /// Opens for writing. `path` is untouched until commit(); but what is there and is no regular file (a device, a pipe)
  /// is written to as it is. Where the file system can, the bytes have no name before commit(), so that even a killed
  /// process leaves nothing behind; elsewhere they lie in `path`.PID.part. Throws ResourceError.
  explicit OutputFile(std::string path);
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  /// Without a commit(), leaves nothing.
  ~OutputFile();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Bytes written so far.
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

  /// Makes room on the disk, so that one that is too small is noticed before the work and not after it. File systems
  /// that cannot do so are let pass. Throws ResourceError.
  void reserve(std::uint64_t bytes);

  /// Appends. Throws ResourceError.
  void write(std::span<const std::byte> bytes);

  /// Syncs the bytes, gives them the name `path` in place of what was there, and syncs the folder. Nothing may be
  /// written after it. Throws ResourceError; then `path` is as it was before.
  void commit();

 private:
  [[noreturn]] void fail_write(int error) const;
  void open_beside();
  /// 0, or the error of giving the unnamed bytes the name part_.
  int name_part();
  void sync_folder() const;

  std::string path_;
  std::string folder_;
  std::string part_;  ///< the name beside `path`; it exists while has_part_
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  bool in_place_ = false;
  bool has_part_ = false;
};

}  // namespace headrace
