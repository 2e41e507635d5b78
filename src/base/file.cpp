#include "base/file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/output_file.hpp"

namespace headrace {

namespace {

[[noreturn]] void fail_open(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR) fail<InputError>("{}: no such file", path);
  fail<ResourceError>("{}: cannot be opened: {}", path, std::strerror(error));
}

}  // namespace

File::File(std::string path) : path_(std::move(path)) {
  // O_NONBLOCK: opening a FIFO must not wait for its writer; it has no effect on a regular file.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail_open(path_, errno);
  struct stat status{};
  const int result = ::fstat(descriptor_, &status);
  const int error = errno;
  if (result != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    if (result != 0) fail_open(path_, error);
    fail<InputError>("{}: expected a regular file, found {}", path_,
                     S_ISDIR(status.st_mode) ? "a directory" : "a device or pipe");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void File::read(std::uint64_t offset, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t count = ::pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      fail<ResourceError>("{}: cannot be read at offset {}: {}", path_, offset + done, std::strerror(errno));
    if (count == 0) {
      fail<InputError>("{}: the file ends at offset {}, expected {} more bytes there", path_, offset + done,
                       out.size() - done);
    }
    done += static_cast<std::size_t>(count);
  }
}

std::string read_text(const std::string& path, std::uint64_t limit_bytes) {
  int descriptor = STDIN_FILENO;
  const std::string name = path == "-" ? "standard input" : path;
  if (path != "-") {
    descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) fail_open(path, errno);
  }
  std::string text;
  char buffer[1 << 16];
  int error = 0;
  for (;;) {
    const ssize_t count = ::read(descriptor, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) error = errno;
    if (count <= 0 || text.size() > limit_bytes) break;
    text.append(buffer, static_cast<std::size_t>(count));
  }
  if (path != "-") ::close(descriptor);
  if (error == EISDIR) fail<InputError>("{}: expected a file, found a directory", name);
  if (error != 0) fail<ResourceError>("{}: cannot be read: {}", name, std::strerror(error));
  if (text.size() > limit_bytes) fail<InputError>("{}: expected at most {} bytes, found more", name, limit_bytes);
  return text;
}

void write_file(const std::string& path, std::string_view bytes) {
  OutputFile file(path);
  file.write(std::as_bytes(std::span(bytes)));
  file.commit();
}

}  // namespace headrace
