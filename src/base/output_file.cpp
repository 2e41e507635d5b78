#include "base/output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"

namespace headrace {

namespace {

constexpr mode_t mode = 0666;  // less the umask

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Where the kernel shows an open file under a name that linkat(2) takes.
std::string name_of(int descriptor) { return fmt::format("/proc/self/fd/{}", descriptor); }

}  // namespace

OutputFile::OutputFile(std::string path)
    : path_(std::move(path)), folder_(folder_of(path_)), part_(fmt::format("{}.{}.part", path_, ::getpid())) {
  struct stat status{};
  const bool exists = ::stat(path_.c_str(), &status) == 0;
  in_place_ = exists && !S_ISREG(status.st_mode);
  if (in_place_) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail_write(errno);
  } else {
    open_beside();
  }
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (has_part_) ::unlink(part_.c_str());
}

void OutputFile::fail_write(int error) const {
  fail<ResourceError>("{}: cannot be written: {}", path_, std::strerror(error));
}

void OutputFile::open_beside() {
  descriptor_ = ::open(folder_.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
  if (descriptor_ >= 0) {
    // Without /proc it could not be named later.
    if (::access(name_of(descriptor_).c_str(), F_OK) == 0) return;
    ::close(std::exchange(descriptor_, -1));
  }
  descriptor_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
  if (descriptor_ < 0) fail_write(errno);
  has_part_ = true;
}

void OutputFile::reserve(std::uint64_t bytes) {
  if (in_place_ || bytes == 0) return;
  int error = 0;
  do {
    error = ::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (error == EINTR);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    fail<ResourceError>("{}: cannot be written: {} bytes are needed: {}", path_, bytes, std::strerror(error));
  }
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_write(errno);
    size_ += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

int OutputFile::name_part() {
  const std::string name = name_of(descriptor_);
  for (const bool again : {true, false}) {
    if (::linkat(AT_FDCWD, name.c_str(), AT_FDCWD, part_.c_str(), AT_SYMLINK_FOLLOW) == 0) return 0;
    // A process of our number that was killed left one: it is nobody's.
    if (errno != EEXIST || !again) return errno;
    ::unlink(part_.c_str());
  }
  return EEXIST;
}

void OutputFile::commit() {
  require(descriptor_ >= 0, "OutputFile: committed twice");
  int error = 0;
  if (!in_place_) {
    if (::fsync(descriptor_) != 0) error = errno;
    if (error == 0 && !has_part_) {
      error = name_part();
      has_part_ = error == 0;
    }
  }
  if (::close(std::exchange(descriptor_, -1)) != 0 && error == 0) error = errno;
  if (error == 0 && !in_place_ && std::rename(part_.c_str(), path_.c_str()) != 0) error = errno;
  if (error != 0) fail_write(error);  // the destructor removes the part
  has_part_ = false;
  if (!in_place_) sync_folder();
}

void OutputFile::sync_folder() const {
  // The bytes are safe under one name or the other, whatever comes of this.
  const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

}  // namespace headrace
