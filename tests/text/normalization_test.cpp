// Form C on the cases of UAX #15, and on a run of marks that a quadratic sort would not finish.
#include "text/normalization.hpp"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "text/utf8.hpp"

namespace headrace::text {
namespace {

std::string utf8(std::u32string_view code_points) {
  std::string out;
  for (const char32_t c : code_points) append_code_point(out, c);
  return out;
}

TEST(Normalization, FormC) {
  EXPECT_EQ(to_nfc("plain"), "plain");
  EXPECT_EQ(to_nfc(utf8(U"e\u0301")), utf8(U"\u00E9"));
  EXPECT_EQ(to_nfc(utf8(U"\u212B")), utf8(U"\u00C5"));                // ANGSTROM SIGN
  EXPECT_EQ(to_nfc(utf8(U"\uFB01")), utf8(U"\uFB01"));                // compatibility characters stay
  EXPECT_EQ(to_nfc(utf8(U"\u1100\u1161\u11A8")), utf8(U"\uAC01"));    // Hangul
  EXPECT_EQ(to_nfc(utf8(U"q\u0307\u0323")), utf8(U"q\u0323\u0307"));  // marks are ordered
  EXPECT_EQ(to_nfc(utf8(U"\u1E0B\u0323")), utf8(U"\u1E0D\u0307"));    // UAX #15, table 6
  EXPECT_EQ(to_nfc(utf8(U"\u0958")), utf8(U"\u0915\u093C"));          // composition exclusion
  EXPECT_EQ(to_nfc(utf8(U"\U0001D15E")), utf8(U"\U0001D157\U0001D165"));
  EXPECT_EQ(to_nfc(utf8(U"\u0344")), utf8(U"\u0308\u0301"));
}

TEST(Normalization, AMillionMarksInTheWrongOrder) {
  std::u32string marks;
  for (int i = 0; i < 500000; ++i) marks += U"\u0301\u0323";  // classes 230 and 220
  std::u32string sorted = marks;
  std::stable_sort(sorted.begin(), sorted.end(), std::greater<>());
  EXPECT_EQ(to_nfc(utf8(marks)), utf8(sorted));
}

}  // namespace
}  // namespace headrace::text
