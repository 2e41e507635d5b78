// Quoting keeps any text on one printable line.
#include "base/quote.hpp"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Quote, LeavesPrintableText) {
  EXPECT_EQ(quoted("blk.0.attn_q.weight"), "'blk.0.attn_q.weight'");
  EXPECT_EQ(quoted(""), "''");
  EXPECT_EQ(quoted("\u00e9 \u4e2d \U0001f511"), "'\u00e9 \u4e2d \U0001f511'");
}

TEST(Quote, EscapesWhatWouldBreakALineOrATerminal) {
  EXPECT_EQ(quoted("a\nb\r\t\x7f\x1b"), "'a\\nb\\x0d\\x09\\x7f\\x1b'");
  EXPECT_EQ(quoted(std::string_view("\0", 1)), "'\\x00'");
  EXPECT_EQ(quoted("it's \\"), "'it\\'s \\\\'");
  EXPECT_EQ(quoted("\u0085"), "'\\xc2\\x85'");       // next line, a C1 control
  EXPECT_EQ(quoted("\u2028"), "'\\xe2\\x80\\xa8'");  // line separator
  EXPECT_EQ(quoted("\u202e"), "'\\xe2\\x80\\xae'");  // right-to-left override
}

TEST(Quote, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(quoted("\xff"), "'\\xff'");
  EXPECT_EQ(quoted("\xc3"), "'\\xc3'");           // cut
  EXPECT_EQ(quoted("\xc3("), "'\\xc3('");         // no continuation
  EXPECT_EQ(quoted("\xc0\xaf"), "'\\xc0\\xaf'");  // overlong
  EXPECT_EQ(quoted("\xe0\x80\xaf"), "'\\xe0\\x80\\xaf'");
  EXPECT_EQ(quoted("\xed\xa0\x80"), "'\\xed\\xa0\\x80'");  // surrogate
  EXPECT_EQ(quoted("\xf4\x90\x80\x80"), "'\\xf4\\x90\\x80\\x80'");
}

TEST(Quote, CutsLongText) { EXPECT_EQ(quoted(std::string(1000, 'x'), 10), "'xxxxxxxxxx...' (1000 bytes)"); }

}  // namespace
}  // namespace headrace
