// Numbers of a command line: the whole word, in its range, or one line that says what was expected.
#include "cli/options.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

namespace headrace::cli {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(ParseNumber, TakesTheWholeWord) {
  EXPECT_EQ(parse_number<std::int64_t>("12"), 12);
  EXPECT_EQ(parse_number<std::int64_t>("-12"), -12);
  EXPECT_EQ(parse_number<std::int64_t>("+12"), 12);
  EXPECT_EQ(parse_number<double>("0.5"), 0.5);
  EXPECT_EQ(parse_number<double>("1e-3"), 1e-3);
  EXPECT_EQ(parse_number<std::uint64_t>("18446744073709551615"), std::numeric_limits<std::uint64_t>::max());
  for (const char* word : {"", "+", "-", "+-1", "1x", " 1", "1 ", "0x10", "1.5", "9223372036854775808", "abc"}) {
    EXPECT_EQ(parse_number<std::int64_t>(word), std::nullopt) << word;
  }
  for (const char* word : {"", "nan", "inf", "-inf", "1e999", "0.5.5", "1,5"}) {
    EXPECT_EQ(parse_number<double>(word), std::nullopt) << word;
  }
  EXPECT_EQ(parse_number<std::uint64_t>("-1"), std::nullopt);
}

class Flags : public testing::Test {
 protected:
  Flags() {
    add_sampling_flags(app, sampling);
    add_engine_flags(app, engine);
  }
  void parse(std::vector<std::string> words) {
    std::reverse(words.begin(), words.end());
    app.parse(words);
  }
  CLI::App app;
  SamplingFlags sampling;
  EngineFlags engine;
};

TEST_F(Flags, AreGreedyAndWholeByDefault) {
  parse({});
  EXPECT_EQ(sampling.sampler.temperature, 0);
  EXPECT_EQ(sampling.sampler.top_p, 1);
  EXPECT_EQ(sampling.sampler.repetition_penalty, 1);
  EXPECT_EQ(sampling.max_tokens, 512);
  EXPECT_EQ(engine.context, 0);
  EXPECT_EQ(engine.threads, 0);
  EXPECT_FALSE(engine.isa);
}

TEST_F(Flags, AreRead) {
  parse({"--temp",
         "0.7",
         "--top-k=40",
         "--top-p",
         "0.9",
         "--min-p",
         "0.05",
         "--repeat-penalty",
         "1.1",
         "--seed",
         "18446744073709551615",
         "-n",
         "7",
         "-c",
         "100",
         "--threads",
         "3",
         "--isa",
         "portable",
         "--trace",
         "t.json"});
  EXPECT_EQ(sampling.sampler.temperature, 0.7);
  EXPECT_EQ(sampling.sampler.top_k, 40U);
  EXPECT_EQ(sampling.sampler.top_p, 0.9);
  EXPECT_EQ(sampling.sampler.min_p, 0.05);
  EXPECT_EQ(sampling.sampler.repetition_penalty, 1.1);
  EXPECT_EQ(sampling.sampler.seed, std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(sampling.max_tokens, 7);
  EXPECT_EQ(engine.context, 100);
  EXPECT_EQ(engine.threads, 3);
  EXPECT_EQ(engine.isa, kernels::Isa::portable);
  EXPECT_EQ(engine.trace, "t.json");
}

TEST_F(Flags, TheLastOfSeveralCounts) {
  parse({"-n", "1", "-n", "2"});
  EXPECT_EQ(sampling.max_tokens, 2);
}

TEST_F(Flags, RefuseWhatIsOutOfRange) {
  const auto refuses = [this](std::vector<std::string> words, const std::string& message) {
    EXPECT_THAT([&] { parse(words); }, ThrowsMessage<CLI::ValidationError>(HasSubstr(message))) << words[0];
  };
  refuses({"--temp", "warm"}, "--temp: expected a number from 0 to 1000, got 'warm'");
  refuses({"--temp", "-0.1"}, "--temp: expected a number from 0 to 1000, got '-0.1'");
  refuses({"--top-p", "1.01"}, "--top-p: expected a number from 0 to 1, got '1.01'");
  refuses({"--top-p", "nan"}, "--top-p: expected a number");
  refuses({"-n", "-1"}, "--max-tokens: expected a whole number of at least 0, got '-1'");
  refuses({"-n", "1.5"}, "--max-tokens: expected a whole number");
  refuses({"-c", "2147483648"}, "--context: expected a whole number from 0 to 2147483647");
  refuses({"--threads", "-1"}, "--threads: expected a whole number from 0");
  refuses({"--seed", "18446744073709551616"}, "--seed: expected a whole number");
  refuses({"--isa", "mmx"}, "--isa: expected one of portable, avx2, avx512, got 'mmx'");
  refuses({"--temp", ""}, "--temp: expected a number");
}

}  // namespace
}  // namespace headrace::cli
