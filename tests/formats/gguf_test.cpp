// Good GGUF files: what the reader gives, in both versions, and what its accessors say of a key or tensor that is not
// as expected. The oracle over real files is in tests/python; broken files are in gguf_fault_test.cpp.
#include "formats/gguf.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "gguf_builder.hpp"

namespace headrace::formats::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StrEq;

Gguf parse(const std::string& bytes) { return Gguf::read(MemorySource("test.gguf", std::as_bytes(std::span(bytes)))); }

template <class Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no InputError";
}

class GgufVersions : public ::testing::TestWithParam<std::uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Gguf, GgufVersions, ::testing::Values(2u, 3u));

TEST_P(GgufVersions, GivesScalarsOfAllTypes) {
  const Gguf gguf = parse(GgufBuilder(GetParam())
                              .add("u8", std::uint8_t{255})
                              .add("i8", std::int8_t{-128})
                              .add("u16", std::uint16_t{65535})
                              .add("i16", std::int16_t{-32768})
                              .add("u32", std::uint32_t{4294967295})
                              .add("i32", std::numeric_limits<std::int32_t>::min())
                              .add("u64", std::numeric_limits<std::uint64_t>::max())
                              .add("i64", std::numeric_limits<std::int64_t>::min())
                              .add("f32", 0.1f)
                              .add("f64", 0.5)
                              .add("yes", true)
                              .add("no", false)
                              .add("text", "a text")
                              .add("empty", "")
                              .build());
  EXPECT_EQ(gguf.version(), GetParam());
  EXPECT_EQ(gguf.file_name(), "test.gguf");
  EXPECT_EQ(gguf.u64("u8"), 255u);
  EXPECT_EQ(gguf.i64("u8"), 255);
  EXPECT_EQ(gguf.i64("i8"), -128);
  EXPECT_EQ(gguf.u64("u16"), 65535u);
  EXPECT_EQ(gguf.i64("i16"), -32768);
  EXPECT_EQ(gguf.u64("u32"), 4294967295u);
  EXPECT_EQ(gguf.i64("i32"), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(gguf.u64("u64"), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(gguf.i64("i64"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(gguf.f32("f32"), 0.1f);
  EXPECT_EQ(gguf.f32("f64"), 0.5f);
  EXPECT_TRUE(gguf.boolean("yes"));
  EXPECT_FALSE(gguf.boolean("no"));
  EXPECT_EQ(gguf.string("text"), "a text");
  EXPECT_EQ(gguf.string("empty"), "");
}

TEST_P(GgufVersions, GivesArrays) {
  const Gguf gguf = parse(GgufBuilder(GetParam())
                              .add("strings", std::vector<std::string>{"a", "", "\u00e9\n"})
                              .add("f32", std::vector<float>{1.5f, -INFINITY})
                              .add("f64", std::vector<double>{0.25})
                              .add("u8", std::vector<std::uint8_t>{0, 255})
                              .add("i32", std::vector<std::int32_t>{-1, 7})
                              .add("i64", std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min()})
                              .add("booleans", std::vector<bool>{true, false, true})
                              .add("nested", std::vector<std::vector<std::uint16_t>>{{1, 2}, {}, {3}})
                              .build());
  const StringArray& strings = gguf.strings("strings");
  ASSERT_EQ(strings.size(), 3u);
  EXPECT_EQ(strings[0], "a");
  EXPECT_EQ(strings[1], "");
  EXPECT_EQ(strings[2], "\u00e9\n");
  EXPECT_THAT(gguf.floats("f32"), ElementsAre(1.5f, -INFINITY));
  EXPECT_THAT(gguf.floats("f64"), ElementsAre(0.25f));
  EXPECT_THAT(gguf.integers("u8"), ElementsAre(0, 255));
  EXPECT_THAT(gguf.integers("i32"), ElementsAre(-1, 7));
  EXPECT_THAT(gguf.integers("i64"), ElementsAre(std::numeric_limits<std::int64_t>::min()));
  EXPECT_THAT(gguf.booleans("booleans"), ElementsAre(true, false, true));
  const auto& nested = std::get<GgufArray>(gguf.find("nested")->value);
  EXPECT_EQ(nested.element, GgufType::array);
  const auto& arrays = std::get<std::vector<GgufArray>>(nested.items);
  ASSERT_EQ(arrays.size(), 3u);
  EXPECT_EQ(arrays[0].count, 2u);
  EXPECT_EQ(arrays[1].count, 0u);
  EXPECT_EQ(arrays[2].element, GgufType::u16);
}

TEST_P(GgufVersions, GivesEmptyArrays) {
  const Gguf gguf = parse(GgufBuilder(GetParam())
                              .add("strings", std::vector<std::string>{})
                              .add("floats", std::vector<float>{})
                              .add("integers", std::vector<std::int32_t>{})
                              .add("booleans", std::vector<bool>{})
                              .add("nested", std::vector<std::vector<float>>{})
                              .build());
  EXPECT_TRUE(gguf.strings("strings").empty());
  EXPECT_THAT(gguf.floats("floats"), IsEmpty());
  EXPECT_THAT(gguf.integers("integers"), IsEmpty());
  EXPECT_THAT(gguf.booleans("booleans"), IsEmpty());
  EXPECT_TRUE(gguf.has("nested"));
}

TEST_P(GgufVersions, PlacesTensors) {
  const std::string file = GgufBuilder(GetParam())
                               .add("general.architecture", "llama")
                               .tensor_f32("bias", {3}, std::vector<float>{1, 2, 3})
                               .tensor("weight", {64, 2}, type_q4_1, std::string(4 * 20, 'w'))
                               .tensor_f32("scalar", {}, std::vector<float>{7})
                               .build();
  const Gguf gguf = parse(file);
  EXPECT_EQ(gguf.alignment(), 32u);
  EXPECT_EQ(gguf.data_offset() % 32, 0u);
  ASSERT_EQ(gguf.tensors().size(), 3u);
  const GgufTensor& bias = gguf.tensor("bias");
  EXPECT_THAT(bias.dimensions, ElementsAre(3));
  EXPECT_EQ(bias.offset, gguf.data_offset());
  EXPECT_EQ(bias.bytes, 12u);
  EXPECT_EQ(gguf.format(bias).name, "f32");
  const GgufTensor& weight = gguf.tensor("weight");
  EXPECT_THAT(weight.dimensions, ElementsAre(64, 2));
  EXPECT_EQ(weight.elements, 128);
  EXPECT_EQ(weight.bytes, 80u);
  EXPECT_EQ(gguf.format(weight).name, "q4_1");
  EXPECT_EQ(file.substr(weight.offset, *weight.bytes), std::string(80, 'w'));
  EXPECT_THAT(gguf.tensor("scalar").dimensions, IsEmpty());
  EXPECT_EQ(gguf.tensor("scalar").bytes, 4u);
  EXPECT_EQ(gguf.find_tensor("biases"), nullptr);
}

TEST(Gguf, ReadsFromAFile) {
  const std::string path = ::testing::TempDir() + "headrace_gguf_test.gguf";
  GgufBuilder().add("answer", 42u).tensor_f32("x", {1}, std::vector<float>{1}).write(path);
  const File file(path);
  const Gguf gguf = Gguf::read(file);
  EXPECT_EQ(gguf.file_name(), path);
  EXPECT_EQ(gguf.u64("answer"), 42u);
  EXPECT_EQ(gguf.tensors().size(), 1u);
}

TEST(Gguf, ReadsAHeaderOfManyBuffers) {
  // Beyond the reader's buffer, with strings across its edges and one array that goes around it.
  std::vector<std::string> words;
  for (int i = 0; i < 60000; ++i) words.push_back("word" + std::to_string(i));
  const std::vector<std::uint32_t> numbers(200000, 7);
  const Gguf gguf = parse(
      GgufBuilder().add("a", std::uint8_t{1}).add("numbers", numbers).add("words", words).add("last", "end").build());
  ASSERT_EQ(gguf.strings("words").size(), words.size());
  for (std::size_t i = 0; i < words.size(); ++i) ASSERT_EQ(gguf.strings("words")[i], words[i]);
  EXPECT_THAT(gguf.integers("numbers"), ::testing::Each(7));
  EXPECT_EQ(gguf.string("last"), "end");
}

TEST(Gguf, TakesOtherAlignments) {
  for (const std::uint32_t alignment : {1u, 8u, 64u, 4096u}) {
    const std::string file = GgufBuilder()
                                 .alignment(alignment)
                                 .tensor("a", {1}, type_f32, "aaaa")
                                 .tensor("b", {1}, type_f32, "bbbb")
                                 .build();
    const Gguf gguf = parse(file);
    EXPECT_EQ(gguf.alignment(), alignment);
    EXPECT_EQ(gguf.data_offset() % alignment, 0u);
    EXPECT_EQ(file.substr(gguf.tensor("b").offset, 4), "bbbb");
  }
}

TEST(Gguf, TakesAnyNames) {
  const std::string long_name(65535, 'n');
  const Gguf gguf = parse(GgufBuilder()
                              .add("schl\u00fcssel.\U0001f511", "\u4e2d\u6587")
                              .add("", std::uint8_t{1})
                              .add(std::string_view("a\0b", 3), std::uint8_t{2})
                              .add(long_name, std::uint8_t{3})
                              .tensor_f32("gewicht.\u00df", {1}, std::vector<float>{1})
                              .build());
  EXPECT_EQ(gguf.string("schl\u00fcssel.\U0001f511"), "\u4e2d\u6587");
  EXPECT_EQ(gguf.u64(""), 1u);
  EXPECT_EQ(gguf.u64(std::string_view("a\0b", 3)), 2u);
  EXPECT_EQ(gguf.u64(long_name), 3u);
  EXPECT_NE(gguf.find_tensor("gewicht.\u00df"), nullptr);
}

TEST(Gguf, TakesNoTensorsAndNoMetadata) {
  const Gguf gguf = parse(GgufBuilder().build());
  EXPECT_THAT(gguf.entries(), IsEmpty());
  EXPECT_THAT(gguf.tensors(), IsEmpty());
}

TEST(Gguf, TakesTensorsInAnyOrderAndWithGaps) {
  const std::string file = GgufBuilder()
                               .tensor_at("b", {8}, type_f32, 96)
                               .tensor_at("a", {8}, type_f32, 0)
                               .tensor("c", {8}, type_f32, std::string(32, 'c') + std::string(96, '.'))
                               .build();
  // c is at 0 as well: that overlaps; without it the two others are fine.
  EXPECT_THAT(error_of([&] { parse(file); }), ::testing::HasSubstr("'c'"));
  GgufBuilder two;
  two.tensor_at("b", {8}, type_f32, 96).tensor_at("a", {8}, type_f32, 0);
  std::string bytes = two.header();
  bytes.resize((bytes.size() + 31) / 32 * 32 + 128);
  const Gguf gguf = parse(bytes);
  EXPECT_EQ(gguf.tensors()[0].name, "b");
  EXPECT_EQ(gguf.tensor("b").offset, gguf.tensor("a").offset + 96);
}

TEST(Gguf, KeepsATensorOfAnUnknownTypeUntilItIsUsed) {
  const Gguf gguf = parse(GgufBuilder()
                              .tensor("old", {256}, 16, std::string(66, 'k'))
                              .tensor("new", {256}, 4000, std::string(144, 'k'))
                              .build());
  EXPECT_EQ(gguf.tensor("old").gguf_type, 16u);
  EXPECT_EQ(gguf.tensor("old").format, nullptr);
  EXPECT_EQ(gguf.tensor("old").bytes, std::nullopt);
  EXPECT_THAT(
      error_of([&] { (void)gguf.format(gguf.tensor("old")); }),
      ::testing::MatchesRegex("test.gguf: tensor 'old' at offset 24: expected one of the Formats .*q4_0.*, found "
                              "iq2_xxs \\(GGUF type 16\\)"));
  EXPECT_THAT(error_of([&] { (void)gguf.format(gguf.tensor("new")); }), ::testing::EndsWith("found GGUF type 4000"));
}

TEST(GgufAccessors, FallBackOnlyWhenTheKeyIsMissing) {
  const Gguf gguf = parse(GgufBuilder().add("number", 5u).add("text", "x").build());
  EXPECT_EQ(gguf.u64("none", 7), 7u);
  EXPECT_EQ(gguf.i64("none", -7), -7);
  EXPECT_EQ(gguf.f32("none", 0.5f), 0.5f);
  EXPECT_EQ(gguf.boolean("none", true), true);
  EXPECT_EQ(gguf.string("none", "fallback"), "fallback");
  EXPECT_EQ(gguf.u64("number", 7), 5u);
  EXPECT_EQ(gguf.string("text", "fallback"), "x");
  EXPECT_THAT(error_of([&] { (void)gguf.u64("text", 7); }),
              StrEq("test.gguf: metadata 'text' at offset 46: expected an integer >= 0, found the string 'x'"));
}

TEST(GgufAccessors, NameTheKeyItsOffsetTheExpectedAndTheFound) {
  const Gguf gguf = parse(GgufBuilder()
                              .add("negative", std::int32_t{-3})
                              .add("big", std::numeric_limits<std::uint64_t>::max())
                              .add("floats", std::vector<float>{1})
                              .add("bigs", std::vector<std::uint64_t>{1, std::numeric_limits<std::uint64_t>::max()})
                              .add("truth", true)
                              .add("evil\n", "two\nlines")
                              .build());
  const auto expect = [&](auto&& action, const std::string& message) {
    EXPECT_THAT(error_of([&] { (void)action(); }), StrEq("test.gguf: " + message));
  };
  expect([&] { return gguf.u64("none"); }, "metadata 'none' is missing: expected an integer >= 0");
  expect([&] { return gguf.string("none"); }, "metadata 'none' is missing: expected a string");
  expect([&] { return gguf.strings("none"); }, "metadata 'none' is missing: expected an array of strings");
  expect([&] { return gguf.u64("negative"); },
         "metadata 'negative' at offset 24: expected an integer >= 0, found the i32 -3");
  expect([&] { return gguf.i64("big"); },
         "metadata 'big' at offset 48: expected a signed 64-bit integer, found the u64 18446744073709551615");
  expect([&] { return gguf.f32("big"); },
         "metadata 'big' at offset 48: expected an f32 or f64, found the u64 18446744073709551615");
  expect([&] { return gguf.f32("floats"); },
         "metadata 'floats' at offset 71: expected an f32 or f64, found an array of 1 f32");
  expect([&] { return gguf.integers("floats"); },
         "metadata 'floats' at offset 71: expected an array of integers that fit an i64, found an array of 1 f32");
  expect([&] { return gguf.strings("floats"); },
         "metadata 'floats' at offset 71: expected an array of strings, found an array of 1 f32");
  expect([&] { return gguf.booleans("floats"); },
         "metadata 'floats' at offset 71: expected an array of booleans, found an array of 1 f32");
  expect([&] { return gguf.floats("bigs"); },
         "metadata 'bigs' at offset 105: expected an array of f32 or f64, found an array of 2 u64");
  expect([&] { return gguf.integers("bigs"); },
         "metadata 'bigs' at offset 105: item 1: expected an integer that fits an i64, found 18446744073709551615");
  expect([&] { return gguf.string("truth"); },
         "metadata 'truth' at offset 149: expected a string, found the boolean true");
  expect([&] { return gguf.boolean("evil\n"); },
         "metadata 'evil\\n' at offset 167: expected a boolean, found the string 'two\\nlines'");
  expect([&] { return gguf.tensor("none").elements; },
         "tensor 'none' is missing: expected it among the file's 0 tensors");
}

}  // namespace
}  // namespace headrace::formats::testing
