// Weights out of pieces of two files: every range of them, and ranges that are not there.
#include "stream/sharded_store.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace headrace::stream {
namespace {

using testing::HasSubstr;

std::string read(const WeightStore& store, std::string_view weight, std::uint64_t offset, std::size_t count) {
  std::string out(count, '\0');
  store.read(weight, offset, std::as_writable_bytes(std::span(out)));
  return out;
}

class ShardedStoreTest : public testing::Test {
 protected:
  static std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = testing::TempDir() + "headrace_sharded_store_" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  File first_{write("1", "0123456789")};
  File second_{write("2", "abcdefghij")};
};

TEST_F(ShardedStoreTest, EveryRangeOfPieces) {
  ShardedStore store;
  store.add("w", {{&second_, 1, 3}, {&first_, 0, 0}, {&first_, 4, 2}, {&first_, 0, 1}, {&second_, 9, 1}});
  const std::string whole = "bcd450j";
  ASSERT_EQ(store.bytes("w"), whole.size());
  for (std::size_t begin = 0; begin <= whole.size(); ++begin) {
    for (std::size_t count = 0; begin + count <= whole.size(); ++count) {
      EXPECT_EQ(read(store, "w", begin, count), whole.substr(begin, count));
    }
  }
}

TEST_F(ShardedStoreTest, MadeWhileRead) {
  ShardedStore store;
  store.add("w", 5, [](std::uint64_t offset, std::span<std::byte> out) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::byte>('A' + offset + i);
  });
  EXPECT_EQ(store.bytes("w"), 5u);
  EXPECT_EQ(read(store, "w", 1, 3), "BCD");
}

TEST_F(ShardedStoreTest, RefusesWhatIsNotThere) {
  ShardedStore store;
  store.add("w", {{&first_, 0, 4}});
  store.add("beyond", {{&first_, 8, 4}});
  const auto message = [&](std::string_view weight, std::uint64_t offset, std::size_t count) -> std::string {
    try {
      (void)read(store, weight, offset, count);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(message("x", 0, 1), HasSubstr("expected the weight x, found none"));
  EXPECT_EQ(message("w", 3, 2), "weight w: expected a range within 4 bytes, got 2 bytes at 3");
  EXPECT_THAT(message("w", ~std::uint64_t{0}, 2), HasSubstr("expected a range"));
  EXPECT_THAT(message("beyond", 0, 4), HasSubstr("the file ends at offset 10"));
}

}  // namespace
}  // namespace headrace::stream
