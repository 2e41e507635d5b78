#include "formats/byte_reader.hpp"

#include <algorithm>
#include <limits>

#include "base/checked.hpp"

namespace headrace::formats {

namespace {

constexpr std::uint64_t buffer_bytes = 256 * 1024;

}  // namespace

ByteReader::ByteReader(const ByteSource& source, std::uint64_t limit_bytes)
    : source_(source), end_(std::min(source.size(), limit_bytes)) {
  buffer_.resize(std::min(end_, buffer_bytes));
}

void ByteReader::need(std::uint64_t count, std::uint64_t bytes_each, std::string_view what) const {
  const auto bytes = checked_mul(count, bytes_each).value_or(std::numeric_limits<std::uint64_t>::max());
  if (bytes <= remaining()) return;
  if (end_ < source_.size()) {
    fail_at(offset_, "{} needs {} bytes, expected at most {} before the limit of {} bytes for a header", what, bytes,
            remaining(), end_);
  }
  fail<InputError>("{}: the file ends at offset {}, {} ({}) needs {} bytes from offset {}: {} bytes are missing",
                   source_.name(), source_.size(), subject_, what, bytes, offset_, bytes - remaining());
}

void ByteReader::read(std::span<std::byte> out, std::string_view what) {
  need(out.size(), 1, what);
  while (!out.empty()) {
    if (offset_ >= buffer_begin_ + buffer_size_) {
      if (out.size() >= buffer_.size()) {  // nothing is gained by a copy through the buffer
        source_.read(offset_, out);
        offset_ += out.size();
        return;
      }
      fill();
    }
    const std::size_t begin = static_cast<std::size_t>(offset_ - buffer_begin_);
    const std::size_t count = std::min(out.size(), buffer_size_ - begin);
    std::memcpy(out.data(), buffer_.data() + begin, count);
    out = out.subspan(count);
    offset_ += count;
  }
}

void ByteReader::fill() {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(buffer_.size(), end_ - offset_));
  buffer_size_ = 0;
  source_.read(offset_, std::span(buffer_).first(count));
  buffer_begin_ = offset_;
  buffer_size_ = count;
}

}  // namespace headrace::formats
