// Large zeroed buffers, page-aligned, in huge pages where the system has them.
#pragma once

#include <cstddef>
#include <span>

namespace headrace {

/// Anonymous memory that is committed when it is first touched. Movable.
class Buffer {
 public:
  Buffer() = default;
  /// Throws ResourceError naming `what` if the system refuses.
  Buffer(std::size_t bytes, const char* what);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace headrace
