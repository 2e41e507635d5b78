// write_file: whole or not at all, never a device replaced by a file.
#include "base/file.hpp"

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace headrace {
namespace {

namespace fs = std::filesystem;

class WriteFile : public testing::Test {
 protected:
  WriteFile() {
    std::string name = fs::temp_directory_path() / "headrace-file-XXXXXX";
    folder = ::mkdtemp(name.data());
  }
  ~WriteFile() override { fs::remove_all(folder); }
  fs::path folder;
};

TEST_F(WriteFile, WritesAndReplaces) {
  const std::string path = folder / "a";
  write_file(path, "first, and longer");
  EXPECT_EQ(read_text(path, 1000), "first, and longer");
  write_file(path, std::string_view("b\0c", 3));
  EXPECT_EQ(read_text(path, 1000), std::string("b\0c", 3));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1) << "nothing is left beside it";
}

TEST_F(WriteFile, NamesThePathThatCannotBeWritten) {
  const std::string path = folder / "missing" / "a";
  EXPECT_THAT([&] { write_file(path, "x"); },
              testing::ThrowsMessage<ResourceError>(testing::HasSubstr(path + ": cannot be written: No such file")));
  // A folder stays, and nothing is left beside it.
  EXPECT_THROW(write_file(folder, "x"), ResourceError);
  EXPECT_TRUE(fs::is_directory(folder));
}

TEST_F(WriteFile, KeepsDevices) {
  const std::string link = folder / "null";
  fs::create_symlink("/dev/null", link);
  write_file(link, "x");
  EXPECT_TRUE(fs::is_symlink(link));
  fs::create_symlink("/dev/full", folder / "full");
  EXPECT_THAT([&] { write_file(folder / "full", "x"); },
              testing::ThrowsMessage<ResourceError>(testing::HasSubstr("No space left")));
}

}  // namespace
}  // namespace headrace
