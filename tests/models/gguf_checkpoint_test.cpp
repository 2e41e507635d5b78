#include "models/gguf_checkpoint.hpp"

#include <optional>
#include <span>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "formats/byte_source.hpp"
#include "formats/gguf_builder.hpp"
#include "models/model_builder.hpp"

namespace headrace::models {
namespace {

using ::testing::HasSubstr;

constexpr std::uint32_t f32_type = 0;
constexpr std::uint32_t unknown_type = 16;  // iq2_xxs, which Headrace does not read

GgufCheckpoint made() {
  formats::testing::GgufBuilder builder;
  builder.add("general.architecture", std::string("llama"));
  builder.add("llama.block_count", std::uint32_t{2});
  builder.add("llama.rope.freq_base", 500000.0f);
  builder.add("llama.wide", std::int64_t{-5});
  builder.tensor("wide", {4, 3}, f32_type, std::string(48, '\0'));
  builder.tensor("other", {256, 2}, unknown_type, std::string(132, '\0'));
  const std::string file = builder.build();
  return GgufCheckpoint(formats::Gguf::read(formats::MemorySource("made.gguf", std::as_bytes(std::span(file)))));
}

template <class F>
std::string refusal(F&& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no InputError";
}

TEST(GgufCheckpoint, KeysAreReadWithoutTheArchitectureBeforeThem) {
  const GgufCheckpoint checkpoint = made();
  EXPECT_EQ(checkpoint.architecture(), "llama");
  EXPECT_EQ(checkpoint.integer("block_count"), 2);
  EXPECT_EQ(checkpoint.integer("wide"), -5);
  EXPECT_EQ(checkpoint.number("rope.freq_base"), 500000.0);
  EXPECT_EQ(checkpoint.integer("llama.block_count"), std::nullopt);
  EXPECT_EQ(checkpoint.string("missing"), std::nullopt);
  EXPECT_EQ(checkpoint.key_name("block_count"), "llama.block_count");
  EXPECT_THAT(refusal([&] { (void)checkpoint.string("block_count"); }),
              HasSubstr("made.gguf: metadata 'llama.block_count'"));
}

TEST(GgufCheckpoint, ShapesHaveTheDimensionAlongARowLast) {
  const GgufCheckpoint checkpoint = made();
  ASSERT_NE(checkpoint.find_tensor("wide"), nullptr);
  EXPECT_THAT(checkpoint.find_tensor("wide")->shape, ::testing::ElementsAre(3, 4));
  EXPECT_EQ(checkpoint.find_tensor("wide")->elements(), 12);
  EXPECT_EQ(checkpoint.find_tensor("narrow"), nullptr);
}

TEST(GgufCheckpoint, ATensorOfAnUnknownFormatIsListedAndRefusedWhenWanted) {
  const GgufCheckpoint checkpoint = made();
  ASSERT_NE(checkpoint.find_tensor("other"), nullptr);
  EXPECT_EQ(checkpoint.find_tensor("other")->format, nullptr);
  EXPECT_THAT(refusal([&] { find_weight(checkpoint, "other"); }), HasSubstr("GGUF type 16"));
  EXPECT_THAT(refusal([&] { find_weight(checkpoint, "narrow"); }), HasSubstr("tensor narrow"));
}

TEST(ConfigReader, RefusesWhatIsMissingOrOutOfBounds) {
  const GgufCheckpoint checkpoint = made();
  const ConfigReader reader(checkpoint);
  EXPECT_EQ(reader.size("block_count"), 2);
  EXPECT_EQ(reader.size("head_count", 7), 7);
  EXPECT_THAT(refusal([&] { (void)reader.size("head_count"); }), HasSubstr("llama.head_count"));
  EXPECT_THAT(refusal([&] { (void)reader.size("wide"); }), HasSubstr("found -5"));
}

}  // namespace
}  // namespace headrace::models
