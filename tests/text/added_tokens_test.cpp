// The automaton against a search that tries every token at every place.
#include "text/added_tokens.hpp"

#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace headrace::text {
namespace {

using Found = std::vector<std::tuple<std::size_t, std::size_t, TokenId>>;

Found find(const AddedTokens& tokens, std::string_view text) {
  Found found;
  for (const auto& match : tokens.find(text)) found.emplace_back(match.begin, match.size, match.id);
  return found;
}

Found find_slowly(const std::vector<AddedTokens::Entry>& entries, std::string_view text) {
  Found found;
  std::size_t at = 0;
  while (at < text.size()) {
    const AddedTokens::Entry* best = nullptr;
    for (const auto& entry : entries) {
      const bool fits = !entry.content.empty() && text.substr(at).starts_with(entry.content);
      if (fits && (best == nullptr || entry.content.size() > best->content.size())) best = &entry;
    }
    if (best != nullptr) found.emplace_back(at, best->content.size(), best->id);
    at += best != nullptr ? best->content.size() : 1;
  }
  return found;
}

TEST(AddedTokens, NoneFindNothing) {
  EXPECT_TRUE(AddedTokens().find("abc").empty());
  EXPECT_TRUE(AddedTokens({{"", 0}}).find("abc").empty());
}

TEST(AddedTokens, LeftmostThenLongest) {
  const AddedTokens tokens({{"<a>", 1}, {"<a><b>", 2}, {"><", 3}, {"<a", 4}, {"<a>", 5}});
  EXPECT_EQ(find(tokens, "x<a><b>y<a><<a"), (Found{{1, 6, 2}, {8, 3, 1}, {12, 2, 4}}));
}

TEST(AddedTokens, EqualsTheSlowSearch) {
  std::mt19937 random(7);
  const auto random_text = [&](std::size_t size) {
    std::string text(size, ' ');
    for (char& c : text) c = static_cast<char>('a' + random() % 2);
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<std::string> contents;
    for (unsigned i = 0; i < 1 + random() % 6; ++i) contents.push_back(random_text(random() % 6));
    std::vector<AddedTokens::Entry> entries;
    for (const std::string& content : contents) entries.push_back({content, static_cast<TokenId>(entries.size())});
    const std::string text = random_text(40);
    ASSERT_EQ(find(AddedTokens(entries), text), find_slowly(entries, text)) << text;
  }
}

TEST(AddedTokens, LongTokensInALongTextThatNearlyMatches) {
  const std::string nearly(200'000, 'a');
  const AddedTokens tokens({{"b" + nearly, 0}, {nearly + "b", 1}});
  EXPECT_TRUE(tokens.find(std::string(2'000'000, 'a')).empty());
}

TEST(AddedTokens, RefusesMoreThan16Megabytes) {
  const std::string content((1u << 24) + 1, 'a');
  EXPECT_THROW(AddedTokens({{content, 0}}), InputError);
}

}  // namespace
}  // namespace headrace::text
