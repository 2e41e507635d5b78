// OutputFile: nothing of it is seen before commit(), nothing is left without it, and a full disk is a typed error.
#include "base/output_file.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/error.hpp"
#include "base/file.hpp"

namespace headrace {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  OutputFileTest() {
    std::string name = fs::temp_directory_path() / "headrace-output-XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~OutputFileTest() override { fs::remove_all(folder); }
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  }
  static void append(OutputFile& file, std::string_view text) { file.write(std::as_bytes(std::span(text))); }
  fs::path folder;
};

TEST_F(OutputFileTest, AppearsWithCommit) {
  const std::string path = folder / "a";
  write_file(path, "before");
  OutputFile file(path);
  append(file, "pieces ");
  append(file, "");
  append(file, "of it");
  EXPECT_EQ(file.size(), 12u);
  EXPECT_EQ(read_text(path, 100), "before");
  file.commit();
  EXPECT_EQ(read_text(path, 100), "pieces of it");
  EXPECT_EQ(files(), 1);
  EXPECT_THROW(file.commit(), InternalError);
}

TEST_F(OutputFileTest, LeavesNothingWithoutCommit) {
  {
    OutputFile file(folder / "a");
    append(file, "lost");
  }
  EXPECT_EQ(files(), 0);
}

TEST_F(OutputFileTest, TakesThePlaceOfAPartThatAKilledProcessLeft) {
  const std::string path = folder / "a";
  write_file(path + "." + std::to_string(::getpid()) + ".part", "left behind");
  OutputFile file(path);
  append(file, "new");
  file.commit();
  EXPECT_EQ(read_text(path, 100), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(OutputFileTest, HasTheModeOfAnyNewFile) {
  const mode_t mask = ::umask(027);
  OutputFile file(folder / "a");
  file.commit();
  ::umask(mask);
  EXPECT_EQ(static_cast<unsigned>(fs::status(folder / "a").permissions()), 0640u);
}

TEST_F(OutputFileTest, RoomCostsNoSize) {
  const std::string path = folder / "a";
  OutputFile file(path);
  file.reserve(1 << 20);
  append(file, "short");
  file.commit();
  EXPECT_EQ(fs::file_size(path), 5u);
}

/// Limits the size of files for as long as it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int) = nullptr;
};

TEST_F(OutputFileTest, SaysThatThereIsNoRoom) {
  const std::string path = folder / "a";
  {
    const FileSizeLimit limit(1000);
    OutputFile file(path);
    EXPECT_THAT(
        [&] { append(file, std::string(2000, 'x')); },
        testing::ThrowsMessage<ResourceError>(testing::HasSubstr(path + ": cannot be written: File too large")));
  }
  OutputFile file(path);
  EXPECT_THAT([&] { file.reserve(std::uint64_t{1} << 61); },
              testing::ThrowsMessage<ResourceError>(testing::HasSubstr("2305843009213693952 bytes are needed")));
  EXPECT_EQ(files(), 0);
}

}  // namespace
}  // namespace headrace
