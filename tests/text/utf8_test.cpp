// UTF-8 repair against the table of the Unicode standard, and streams cut at every place.
#include "text/utf8.hpp"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace headrace::text {
namespace {

constexpr const char* kR = "\xEF\xBF\xBD";

std::string repeat(const char* text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

/// Inputs and what Python's bytes.decode("utf-8", "replace") gives.
std::vector<std::pair<std::string, std::string>> cases() {
  return {
      {"", ""},
      {"abc", "abc"},
      {std::string("\0x", 2), std::string("\0x", 2)},
      {"\xC3\xA9 \xE2\x82\xAC \xF0\x9F\xA6\x99", "\xC3\xA9 \xE2\x82\xAC \xF0\x9F\xA6\x99"},
      {"\x80"
       "a\xBF",
       repeat(kR, 1) + "a" + kR},
      {"\xC0\xAF", repeat(kR, 2)},          // overlong
      {"\xE0\x80\xAF", repeat(kR, 3)},      // overlong
      {"\xED\xA0\x80", repeat(kR, 3)},      // surrogate
      {"\xF4\x90\x80\x80", repeat(kR, 4)},  // above U+10FFFF
      {"\xF5\xFF", repeat(kR, 2)},
      {"\xE2\x82", kR},  // incomplete at the end: one maximal subpart
      {"\xF0\x9F\xA6", kR},
      {"\xE2\x82"
       "a",
       std::string(kR) + "a"},
      {"\xF0\x9F\xF0\x9F\xA6\x99", std::string(kR) + "\xF0\x9F\xA6\x99"},
      // Table 3-8 of the Unicode standard.
      {"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64",
       std::string("a") + repeat(kR, 3) + "b" + kR + "c" + repeat(kR, 2) + "d"},
  };
}

TEST(Utf8, RepairsMaximalSubparts) {
  for (const auto& [bytes, expected] : cases()) {
    EXPECT_EQ(repair_utf8(bytes), expected);
    EXPECT_EQ(is_valid_utf8(bytes), bytes == expected);
  }
}

TEST(Utf8, StreamGivesTheSameWhereverItIsCut) {
  std::string all;
  for (const auto& [bytes, expected] : cases()) all += bytes;
  const std::string expected = repair_utf8(all);
  for (std::size_t first = 0; first <= all.size(); ++first) {
    for (std::size_t second = first; second <= all.size(); ++second) {
      Utf8Stream stream;
      std::string out;
      for (const std::string& part : {all.substr(0, first), all.substr(first, second - first), all.substr(second)}) {
        const std::string piece = stream.push(part);
        EXPECT_TRUE(is_valid_utf8(piece));
        out += piece;
      }
      out += stream.flush();
      ASSERT_EQ(out, expected) << first << " " << second;
    }
  }
}

TEST(Utf8, StreamWaitsOnlyWhileTheCharacterCanStillBecomeValid) {
  Utf8Stream stream;
  EXPECT_EQ(stream.push("\xF0\x9F"), "");
  EXPECT_EQ(stream.push("\xA6"), "");
  EXPECT_EQ(stream.push("\x99"
                        "a"),
            "\xF0\x9F\xA6\x99"
            "a");
  EXPECT_EQ(stream.push("\xED"), "");
  EXPECT_EQ(stream.push("\xA0"), repeat(kR, 2));
  EXPECT_EQ(stream.flush(), "");
  EXPECT_EQ(stream.push("\xE2\x82"), "");
  EXPECT_EQ(stream.flush(), kR);
  EXPECT_EQ(stream.flush(), "");
}

TEST(Utf8, CodePointsRoundTrip) {
  for (char32_t c = 1; c < 0x110000; c += c < 0x11000 ? 1 : 97) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_code_point(text, c);
    ASSERT_TRUE(is_valid_utf8(text));
    std::size_t size = 0;
    ASSERT_EQ(read_code_point(text, size), c);
    ASSERT_EQ(size, text.size());
  }
}

}  // namespace
}  // namespace headrace::text
