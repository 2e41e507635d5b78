#include "base/memory.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace headrace {

Buffer::Buffer(std::size_t bytes, const char* what) {
  if (bytes == 0) return;
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  const auto padded = checked_align_up(bytes, bytes >= huge_page ? huge_page : std::size_t{4096});
  void* const memory =
      padded ? ::mmap(nullptr, *padded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
  if (memory == MAP_FAILED)
    fail<ResourceError>("{}: {} bytes of memory are not to be had: {}", what, bytes, std::strerror(errno));
  size_ = *padded;
  data_ = static_cast<std::byte*>(memory);
  // Advice only: without huge pages everything works, with more misses of the address cache.
  if (bytes >= huge_page) ::madvise(memory, size_, MADV_HUGEPAGE);
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Buffer::~Buffer() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

}  // namespace headrace
