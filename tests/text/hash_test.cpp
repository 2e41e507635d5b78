// The tables against std::map.
#include "text/hash.hpp"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headrace::text {
namespace {

TEST(IntegerMap, FirstEntryOfAKeyCounts) {
  IntegerMap<int> map(2000);
  std::map<std::uint64_t, int> expected;
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t key = static_cast<std::uint64_t>(i % 700) << (i % 3 * 20);
    map.insert(key, i);
    expected.insert({key, i});
  }
  for (const auto& [key, value] : expected) {
    ASSERT_NE(map.find(key), nullptr);
    EXPECT_EQ(*map.find(key), value);
  }
  EXPECT_EQ(map.find(701), nullptr);
  EXPECT_EQ(IntegerMap<int>().find(0), nullptr);
}

TEST(StringIndex, FindsEveryStringAndNoOther) {
  std::vector<std::string> strings = {"", std::string(1, '\0'), std::string(2, '\0'), "a"};
  for (int i = 0; i < 3000; ++i) strings.push_back(std::string(i % 23, 'x') + std::to_string(i));
  const auto text = [&](std::int32_t id) -> std::string_view { return strings[id]; };
  StringIndex index(strings.size() + 1);
  for (std::size_t i = 0; i < strings.size(); ++i) index.insert(static_cast<std::int32_t>(i), text);
  for (std::size_t i = 0; i < strings.size(); ++i) EXPECT_EQ(index.find(strings[i], text), static_cast<int>(i));
  EXPECT_EQ(index.find("absent", text), -1);
  EXPECT_EQ(index.find(std::string(3, '\0'), text), -1);
  strings.push_back("a");
  index.insert(static_cast<std::int32_t>(strings.size() - 1), text);
  EXPECT_EQ(index.find("a", text), 3) << "the first of equal strings counts";
}

}  // namespace
}  // namespace headrace::text
