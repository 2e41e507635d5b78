// What a mistyped word was meant to be: nearest by edits, and nothing at all if it is too far.
#include "cli/suggest.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

TEST(EditDistance, CountsEdits) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("abc", "abc"), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("abc", "abd"), 1U);    // replaced
  EXPECT_EQ(edit_distance("abc", "abcd"), 1U);   // inserted
  EXPECT_EQ(edit_distance("abc", "ac"), 1U);     // deleted
  EXPECT_EQ(edit_distance("tmep", "temp"), 1U);  // swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("ca", "abc"), 3U) << "restricted: a swapped pair is not edited again";
}

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string> options = {"--temp", "--top-p", "--top-k",     "--threads",
                                            "--seed", "-n",      "--max-tokens"};
  EXPECT_EQ(nearest("--tmep", options), "--temp");
  EXPECT_EQ(nearest("--temperature", options), std::nullopt) << "more than a third is different";
  EXPECT_EQ(nearest("--thread", options), "--threads");
  EXPECT_EQ(nearest("-temp", options), "--temp") << "dashes do not count";
  EXPECT_EQ(nearest("--sed", options), "--seed");
  EXPECT_EQ(nearest("--max", options), "--max-tokens") << "an abbreviation";
  EXPECT_EQ(nearest("--top_p", options), "--top-p");
}

TEST(Nearest, StaysSilentIfNothingIsNear) {
  const std::vector<std::string> verbs = {"run", "chat", "info"};
  EXPECT_EQ(nearest("serve", verbs), std::nullopt);
  EXPECT_EQ(nearest("", verbs), std::nullopt);
  EXPECT_EQ(nearest("--", verbs), std::nullopt);
  EXPECT_EQ(nearest("x", verbs), std::nullopt) << "one letter is near to everything";
  EXPECT_EQ(nearest("rnu", verbs), "run");
  EXPECT_EQ(nearest(std::string(1000000, 'r'), verbs), std::nullopt);
  EXPECT_EQ(nearest("run", {}), std::nullopt);
}

}  // namespace
}  // namespace headrace::cli
