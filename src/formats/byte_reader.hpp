// A buffered, bounded cursor over a ByteSource for binary headers: little-endian numbers, and errors that say where.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "formats/byte_source.hpp"

namespace headrace::formats {

class ByteReader {
 public:
  /// Reads from the start of `source`, which must outlive the reader, and never past `limit_bytes`.
  ByteReader(const ByteSource& source, std::uint64_t limit_bytes);

  /// What is being read, for messages, e.g. "metadata 'general.name'".
  void set_subject(std::string subject) { subject_ = std::move(subject); }

  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  /// Bytes between the cursor and the end of the file or the limit.
  [[nodiscard]] std::uint64_t remaining() const noexcept { return end_ - offset_; }

  /// Throws InputError, saying how much is missing, unless `count` items of at least `bytes_each` bytes fit into what
  /// remains. To be called before anything of that size is allocated.
  void need(std::uint64_t count, std::uint64_t bytes_each, std::string_view what) const;

  /// Fills `out`, or throws as `need` does.
  void read(std::span<std::byte> out, std::string_view what);

  /// The next number, little endian; throws as `need` does.
  template <class T>
    requires(std::integral<T> || std::floating_point<T>)
  T number(std::string_view what) {
    static_assert(std::endian::native == std::endian::little);
    T value{};
    read(std::as_writable_bytes(std::span(&value, 1)), what);
    return value;
  }

  /// Throws InputError "FILE: SUBJECT at offset N: ...".
  template <class... Args>
  [[noreturn]] void fail_at(std::uint64_t offset, fmt::format_string<Args...> format, Args&&... args) const {
    throw InputError(fmt::format("{}: {} at offset {}: {}", source_.name(), subject_, offset,
                                 fmt::format(format, std::forward<Args>(args)...)));
  }

 private:
  void fill();

  const ByteSource& source_;
  std::uint64_t end_;
  std::uint64_t offset_ = 0;
  std::string subject_;
  std::vector<std::byte> buffer_;
  std::uint64_t buffer_begin_ = 0;  ///< offset in the source of the buffer's first byte
  std::size_t buffer_size_ = 0;     ///< bytes of the buffer that are filled
};

}  // namespace headrace::formats
