// Text that reaches a terminal or a line of stderr is harmless there.
#include "cli/console.hpp"

#include <string>

#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

using std::string_literals::operator""s;

TEST(OneLine, ReplacesWhatWouldBreakTheLine) {
  EXPECT_EQ(one_line("plain äöü 😀"), "plain äöü 😀");
  EXPECT_EQ(one_line("a\nb\r\tc\x1b[31m\x7f\0d"s), "a b  c [31m  d");
  EXPECT_EQ(one_line("a\u0085b\u009bc"), "a b c") << "the controls of Latin-1";
  EXPECT_EQ(one_line("a\xff z"), "a\uFFFD z");
}

TEST(Harmless, KeepsLinesAndTabs) {
  EXPECT_EQ(harmless("a\n\tb 😀"), "a\n\tb 😀");
  EXPECT_EQ(harmless("\x1b]0;title\x07"), "\uFFFD]0;title\uFFFD");
  EXPECT_EQ(harmless("a\rb\u009bm"), "a\uFFFDb\uFFFDm");
}

}  // namespace
}  // namespace headrace::cli
