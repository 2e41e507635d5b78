// The sampler against probabilities computed by hand, at its edges, and by the frequencies of its draws.
#include "text/sampler.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace headrace::text {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Logits whose softmax is 1/2, 1/4, 1/8, 1/8, out of order: ids 2, 0, 1, 3.
const std::vector<float> halves = {std::log(2.0F), 0.0F, std::log(4.0F), 0.0F};

SamplerParams plain() {
  SamplerParams params;
  params.temperature = 1;
  return params;
}

std::vector<std::int64_t> ids(const std::vector<Candidate>& list) {
  std::vector<std::int64_t> result;
  for (const auto& each : list) result.push_back(each.token);
  return result;
}

std::vector<double> shares(const std::vector<Candidate>& list) {
  std::vector<double> result;
  for (const auto& each : list) result.push_back(each.probability);
  return result;
}

auto near(std::vector<double> values) { return testing::Pointwise(testing::DoubleNear(1e-7), values); }

TEST(Sampler, PlainIsTheSoftmaxInDescendingOrder) {
  const auto list = candidates(halves, {}, plain());
  EXPECT_EQ(ids(list), (std::vector<std::int64_t>{2, 0, 1, 3}));
  EXPECT_THAT(shares(list), near({0.5, 0.25, 0.125, 0.125}));
}

TEST(Sampler, TemperatureDividesTheLogits) {
  auto params = plain();
  params.temperature = 0.5;  // squares the probabilities: 16, 4, 1, 1 of 22
  EXPECT_THAT(shares(candidates(halves, {}, params)), near({16.0 / 22, 4.0 / 22, 1.0 / 22, 1.0 / 22}));
}

TEST(Sampler, TemperatureZeroIsGreedyAndTiesGoToTheLowestId) {
  auto params = plain();
  params.temperature = 0;
  EXPECT_EQ(ids(candidates(halves, {}, params)), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(sample(std::vector<float>{1, 3, 3, 2}, {}, params, 7), 1);
}

TEST(Sampler, GreedyIsTheFirstCandidateOfLongRowsToo) {
  auto params = plain();
  params.temperature = 0;
  std::mt19937 random(5);
  for (const std::size_t size : {1, 15, 16, 17, 1023, 1024, 1025, 5000}) {
    for (int i = 0; i < 20; ++i) {
      std::vector<float> row(size);
      for (float& logit : row) logit = static_cast<float>(random() % 4096) - 5000;
      row[random() % size] = row[random() % size] = -3;  // twice, as a rule
      EXPECT_EQ(sample(row, {}, params, 0), candidates(row, {}, params)[0].token);
      row[random() % size] = -infinity;
      if (size > 2) {
        EXPECT_EQ(sample(row, {}, params, 0), candidates(row, {}, params)[0].token);
      }
      for (const float bad : {NAN, infinity}) {
        std::vector<float> refused = row;
        refused[random() % size] = bad;
        EXPECT_THROW(static_cast<void>(sample(refused, {}, params, 0)), InputError);
      }
    }
  }
}

TEST(Sampler, TopKKeepsTheFirstK) {
  auto params = plain();
  params.top_k = 3;
  const auto list = candidates(halves, {}, params);
  EXPECT_EQ(ids(list), (std::vector<std::int64_t>{2, 0, 1}));  // the tie of 1 and 3 goes to 1
  EXPECT_THAT(shares(list), near({4.0 / 7, 2.0 / 7, 1.0 / 7}));
  params.top_k = 1;
  EXPECT_EQ(ids(candidates(halves, {}, params)), (std::vector<std::int64_t>{2}));
  params.top_k = 100;
  EXPECT_EQ(candidates(halves, {}, params).size(), 4U);
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  auto params = plain();
  params.top_p = 0.6;
  EXPECT_THAT(shares(candidates(halves, {}, params)), near({2.0 / 3, 1.0 / 3}));
  params.top_p = 0.4;
  EXPECT_EQ(ids(candidates(halves, {}, params)), (std::vector<std::int64_t>{2}));
  params.top_p = 0;
  EXPECT_EQ(ids(candidates(halves, {}, params)), (std::vector<std::int64_t>{2}));
}

TEST(Sampler, TopPCountsWhatTopKLeft) {
  auto params = plain();
  params.top_k = 2;  // 2/3 and 1/3
  params.top_p = 0.66;
  EXPECT_EQ(ids(candidates(halves, {}, params)), (std::vector<std::int64_t>{2}));
}

TEST(Sampler, MinPIsAShareOfTheMostProbable) {
  auto params = plain();
  params.min_p = 0.3;
  EXPECT_THAT(shares(candidates(halves, {}, params)), near({2.0 / 3, 1.0 / 3}));
  params.min_p = 1;
  EXPECT_EQ(ids(candidates(halves, {}, params)), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(ids(candidates(std::vector<float>{2, 2, 1}, {}, params)), (std::vector<std::int64_t>{0, 1}));
}

TEST(Sampler, RepetitionPenaltyDividesPositiveAndMultipliesNegativeLogits) {
  auto params = plain();
  params.repetition_penalty = 2;
  const std::vector<float> logits = {4, -1, 0, 1};
  const std::vector<std::int64_t> recent = {0, 1, 0};  // 4 -> 2, -1 -> -2, each once
  const double total = std::exp(2) + std::exp(1) + std::exp(0) + std::exp(-2);
  const auto list = candidates(logits, recent, params);
  EXPECT_EQ(ids(list), (std::vector<std::int64_t>{0, 3, 2, 1}));
  EXPECT_THAT(shares(list),
              near({std::exp(2) / total, std::exp(1) / total, std::exp(0) / total, std::exp(-2) / total}));
}

TEST(Sampler, RepetitionWindowForgets) {
  auto params = plain();
  params.repetition_penalty = 100;
  params.temperature = 0;
  const std::vector<float> logits = {3, 2, 1};
  EXPECT_EQ(sample(logits, std::vector<std::int64_t>{0, 1}, params, 0), 2);
  params.repetition_window = 1;
  EXPECT_EQ(sample(logits, std::vector<std::int64_t>{0, 1}, params, 0), 0);
  params.repetition_window = 0;
  EXPECT_EQ(sample(logits, std::vector<std::int64_t>{0}, params, 0), 0);
}

TEST(Sampler, OddLogits) {
  const auto params = plain();
  EXPECT_EQ(ids(candidates(std::vector<float>{-infinity, 0, -infinity}, {}, params)), (std::vector<std::int64_t>{1}));
  EXPECT_THROW(static_cast<void>(candidates(std::vector<float>{0, NAN}, {}, params)), InputError);
  EXPECT_THROW(static_cast<void>(sample(std::vector<float>{0, infinity}, {}, params, 0)), InputError);
  EXPECT_THROW(static_cast<void>(sample(std::vector<float>{-infinity}, {}, params, 0)), InputError);
  EXPECT_THROW(static_cast<void>(sample(std::vector<float>{}, {}, params, 0)), InputError);
  auto penalized = params;
  penalized.repetition_penalty = 1.5;
  EXPECT_THROW(static_cast<void>(sample(halves, std::vector<std::int64_t>{4}, penalized, 0)), InputError);
  EXPECT_THROW(static_cast<void>(sample(halves, std::vector<std::int64_t>{-1}, penalized, 0)), InputError);
  // Logits far apart, and a temperature that overflows every ratio: the best token remains.
  auto cold = params;
  cold.temperature = 1e-300;
  EXPECT_EQ(sample(std::vector<float>{-3e38F, 3e38F, 0}, {}, cold, 3), 1);
}

TEST(Sampler, ParametersAreNamedWhenTheyAreWrong) {
  const auto message = [](auto change) -> std::string {
    SamplerParams params;
    change(params);
    try {
      params.validate();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([](auto&) {}), "");
  EXPECT_EQ(message([](auto& p) { p.temperature = -1; }), "temperature: expected a number of at least 0, found -1");
  EXPECT_EQ(message([](auto& p) { p.temperature = NAN; }), "temperature: expected a number of at least 0, found nan");
  EXPECT_EQ(message([](auto& p) { p.top_p = 1.5; }), "top_p: expected a number from 0 to 1, found 1.5");
  EXPECT_EQ(message([](auto& p) { p.min_p = -0.5; }), "min_p: expected a number from 0 to 1, found -0.5");
  EXPECT_EQ(message([](auto& p) { p.repetition_penalty = 0; }),
            "repetition_penalty: expected a number above 0, found 0");
}

// Known answers of Philox 4x32-10 from the Random123 distribution (kat_vectors).
TEST(Sampler, PhiloxKnownAnswers) {
  const auto zero = philox({0, 0, 0, 0}, {0, 0});
  EXPECT_THAT(zero.words, testing::ElementsAre(0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U));
  const std::uint32_t f = 0xffffffffU;
  EXPECT_THAT(philox({f, f, f, f}, {f, f}).words,
              testing::ElementsAre(0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU));
  EXPECT_THAT(philox({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}).words,
              testing::ElementsAre(0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U));
}

/// Chi-square of draws at positions 0 … n-1 against the probabilities that `candidates` states.
double chi_square(const std::vector<float>& logits, const SamplerParams& params, std::uint64_t n) {
  std::map<std::int64_t, double> counts;
  for (std::uint64_t position = 0; position < n; ++position) counts[sample(logits, {}, params, position)] += 1;
  double result = 0;
  for (const auto& each : candidates(logits, {}, params)) {
    const double expected = each.probability * static_cast<double>(n);
    result += (counts[each.token] - expected) * (counts[each.token] - expected) / expected;
    counts.erase(each.token);
  }
  for (const auto& [token, count] : counts) EXPECT_EQ(count, 0) << token;
  return result;
}

TEST(Sampler, DrawsFollowTheProbabilities) {
  const std::vector<float> logits = {1, 0.5F, 0, -0.5F, 2, -1, 1.5F, 0.25F};
  for (const std::uint64_t seed : {0ULL, 1ULL, 42ULL, 1ULL << 40U, ~0ULL}) {
    auto params = plain();
    params.seed = seed;
    // 7 degrees of freedom: 29.9 is exceeded with probability 1e-4.
    EXPECT_LT(chi_square(logits, params, 20'000), 29.9) << seed;
    params.top_k = 4;
    params.temperature = 1.7;
    EXPECT_LT(chi_square(logits, params, 20'000), 21.1) << seed;  // 3 degrees of freedom
  }
}

TEST(Sampler, LargeVocabularyAgreesWithTheListOfCandidates) {
  std::vector<float> logits(150'000);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(8 * uniform(5, i));
  for (const double top_p : {1.0, 0.999, 0.5}) {
    for (const std::size_t top_k : {std::size_t{0}, std::size_t{1000}}) {
      auto params = plain();
      params.top_p = top_p;
      params.top_k = top_k;
      const auto list = candidates(logits, {}, params);
      for (std::uint64_t position = 0; position < 5; ++position) {
        const auto token = sample(logits, {}, params, position);
        double before = 0;
        std::size_t i = 0;
        for (; i < list.size() && list[i].token != token; ++i) before += list[i].probability;
        ASSERT_LT(i, list.size());
        const double at = uniform(params.seed, position);
        EXPECT_GE(at, before - 1e-9);
        EXPECT_LE(at, before + list[i].probability + 1e-9);
      }
    }
  }
}

TEST(Sampler, SamplingIsAFunctionOfItsArguments) {
  const auto params = plain();
  std::map<std::int64_t, int> seen;
  for (std::uint64_t position = 0; position < 64; ++position) {
    const auto token = sample(halves, {}, params, position);
    EXPECT_EQ(sample(halves, {}, params, position), token);
    ++seen[token];
  }
  EXPECT_EQ(seen.size(), 4U);
  auto other = params;
  other.seed = 1;
  EXPECT_NE(uniform(params.seed, 0), uniform(other.seed, 0));
  EXPECT_NE(uniform(params.seed, 0), uniform(params.seed, 1ULL << 32U));
}

}  // namespace
}  // namespace headrace::text
