// Which tests a choice gives, and which number would fit where one does not.
#include "measure/test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace headrace::measure {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(ChooseTests, GivesPrefillThenEveryDepthWithEveryNumberOfSequences) {
  const auto tests = choose_tests({.prompt_tokens = 10, .tokens = 4, .depths = {0, 12}, .sequences = {1, 3}}, 16);
  EXPECT_THAT(tests, ElementsAre(measure::Test{TestKind::prefill, 10, 0, 1}, measure::Test{TestKind::decode, 4, 0, 1},
                                 measure::Test{TestKind::decode, 4, 0, 3}, measure::Test{TestKind::decode, 4, 12, 1},
                                 measure::Test{TestKind::decode, 4, 12, 3}));
  const TestSizes sizes = sizes_of(tests);
  EXPECT_EQ(sizes.context, 16);
  EXPECT_EQ(sizes.sequences, 3);
  EXPECT_EQ(sizes.positions, 48);
}

TEST(ChooseTests, LeavesOutWhatHasNoTokens) {
  EXPECT_THAT(choose_tests({.prompt_tokens = 0, .tokens = 4}, 16),
              ElementsAre(measure::Test{TestKind::decode, 4, 0, 1}));
  EXPECT_THAT(choose_tests({.prompt_tokens = 8, .tokens = 0}, 16),
              ElementsAre(measure::Test{TestKind::prefill, 8, 0, 1}));
  EXPECT_THROW(choose_tests({.prompt_tokens = 0, .tokens = 0}, 16), InputError);
}

TEST(ChooseTests, NamesTheNumberThatFits) {
  const auto choose = [](const TestChoice& choice) { return [choice] { (void)choose_tests(choice, 16); }; };
  EXPECT_THAT(choose({.prompt_tokens = 0, .tokens = 4, .depths = {0, 13}}),
              ThrowsMessage<InputError>(AllOf(HasSubstr("at most depth 12 does"), HasSubstr("-c 17 "))));
  EXPECT_THAT(choose({.prompt_tokens = 17, .tokens = 4}),
              ThrowsMessage<InputError>(AllOf(HasSubstr("at most 16 do"), HasSubstr("-c 17 "))));
  EXPECT_THAT(choose({.prompt_tokens = 8, .tokens = 17}), ThrowsMessage<InputError>(HasSubstr("at most 16 do")));
  EXPECT_THAT(choose({.prompt_tokens = 8, .tokens = 4, .depths = {INT64_MAX}}),
              ThrowsMessage<InputError>(HasSubstr("at most depth 12 does")));
}

TEST(SizesOf, RefusesMoreThanCanBeCounted) {
  EXPECT_THROW(sizes_of({{TestKind::decode, 1, INT64_MAX / 2, 3}}), InputError);
}

}  // namespace
}  // namespace headrace::measure
