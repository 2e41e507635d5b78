// What the JSON parser takes and refuses, and what its fields say of values that are not what was expected.
#include "formats/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace headrace::formats {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StrEq;

template <class Action>
std::string fault(Action&& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

std::string parse_fault(const std::string& text) {
  return fault([&] { (void)parse_json("f", text); });
}

TEST(Json, ParsesWhatNlohmannParses) {
  for (const std::string text :
       {"1", "-1", "1.5", "null", "true", "[]", "{}", "\"\\u00e4\"", "[[1,[2,{\"a\":[]}],{}],\"x\"]",
        "{\"a\":{\"b\":[1,2,{\"c\":null}],\"d\":\"e\"},\"f\":18446744073709551615,\"g\":[-9223372036854775808]}"}) {
    EXPECT_EQ(parse_json("f", text), nlohmann::json::parse(text)) << text;
  }
}

TEST(Json, RefusesWhatIsNone) {
  EXPECT_THAT(parse_fault(""), StrEq("f: byte 1: expected JSON, found ''"));
  EXPECT_THAT(parse_fault("{\"a\":1"), HasSubstr("f: byte 7: expected JSON, found '{\"a\":1'"));
  EXPECT_THAT(parse_fault("{\"a\":NaN}"), HasSubstr("expected JSON"));
  EXPECT_THAT(parse_fault("[1,]"), HasSubstr("expected JSON"));
  EXPECT_THAT(parse_fault("[1] 2"), HasSubstr("expected JSON"));
  EXPECT_THAT(parse_fault("\"\xff\""), HasSubstr("expected JSON, found '\"\\xff\"'"));
  EXPECT_THAT(parse_fault("\"\\ud800\""), HasSubstr("expected JSON"));
  EXPECT_THAT(parse_fault("[1e999]"), HasSubstr("expected numbers that a double holds"));
  EXPECT_THAT(parse_fault("\n\"a\nb\""), Not(HasSubstr("\n")));
}

TEST(Json, RefusesKeysThatOccurTwice) {
  EXPECT_THAT(parse_fault("{\"a\":1,\"b\":{\"a\":2},\"a\":3}"),
              StrEq("f: expected each key of an object once, found 'a' twice"));
}

TEST(Json, BoundsDepth) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_THAT(parse_fault(nested(max_json_depth)), StrEq(""));
  EXPECT_THAT(parse_fault(nested(max_json_depth + 1)), StrEq("f: expected JSON nested at most 32 deep, found more"));
  EXPECT_THAT(parse_fault(std::string(1'000'000, '[')), HasSubstr("nested"));
}

TEST(JsonField, SaysWhereItStands) {
  const std::string name = "f";
  const nlohmann::json root =
      parse_json(name, R"({"a":{"b":[1,"x",-1,1.5,true]},"none":null,"a b\n":{"c":1},"big":9223372036854775808})");
  const JsonField field(name, root);
  const JsonField items = field.at("a").at("b");
  EXPECT_EQ(items.size(), 5u);
  EXPECT_EQ(items[0].u64(), 1u);
  EXPECT_EQ(items[2].i64(), -1);
  EXPECT_EQ(items[0].number(), 1.0);
  EXPECT_EQ(items[3].number(), 1.5);
  EXPECT_EQ(items[1].string(), "x");
  EXPECT_TRUE(items[4].boolean());
  EXPECT_FALSE(field.find("none"));
  EXPECT_FALSE(field.find("missing"));
  EXPECT_EQ(field.string("missing", "y"), "y");
  EXPECT_FALSE(field.boolean("none", false));
  EXPECT_EQ(field.at("big").u64(), std::uint64_t{1} << 63);
  EXPECT_THAT(fault([&] { (void)items[2].u64(); }), StrEq("f: a.b[2]: expected an integer >= 0, found the number -1"));
  EXPECT_THAT(fault([&] { (void)items[3].i64(); }), HasSubstr("expected an integer of 64 bits, found the number 1.5"));
  EXPECT_THAT(fault([&] { (void)field.at("big").i64(); }), HasSubstr("big: expected an integer of 64 bits, found"));
  EXPECT_THAT(fault([&] { (void)items.string(); }), StrEq("f: a.b: expected a string, found an array of 5"));
  EXPECT_THAT(fault([&] { (void)items[1].number(); }), HasSubstr("a.b[1]: expected a number, found the string 'x'"));
  EXPECT_THAT(fault([&] { (void)items[0].boolean(); }), HasSubstr("expected true or false, found the number 1"));
  EXPECT_THAT(fault([&] { (void)field.at("a").size(); }), StrEq("f: a: expected an array, found an object"));
  EXPECT_THAT(fault([&] { (void)items.find("x"); }), HasSubstr("a.b: expected an object, found an array of 5"));
  EXPECT_THAT(fault([&] { (void)field.at("none"); }), StrEq("f: none: expected it to be there, found null"));
  EXPECT_THAT(fault([&] { (void)field.at("a b\n").at("d"); }),
              StrEq("f: 'a b\\n'.d: expected it to be there, found none"));
}

}  // namespace
}  // namespace headrace::formats
