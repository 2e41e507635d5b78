// Scoring against softmaxes by hand, and against rows that are stepped one by one.
#include "run/score.hpp"

#include <cmath>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "run/tiny_model.hpp"

namespace headrace::run {
namespace {

using headrace::testing::TinyModel;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(LogProbability, IsThatOfASoftmax) {
  const std::vector<float> logits = {std::log(1.0F), std::log(2.0F), std::log(5.0F)};
  EXPECT_NEAR(log_probability(logits, 0), std::log(1.0 / 8), 1e-6);
  EXPECT_NEAR(log_probability(logits, 1), std::log(2.0 / 8), 1e-6);
  EXPECT_NEAR(log_probability(logits, 2), std::log(5.0 / 8), 1e-6);
  // Far from what exp can hold.
  EXPECT_NEAR(log_probability(std::vector<float>{10000.0F, 10000.0F}, 0), -std::log(2.0), 1e-12);
  EXPECT_NEAR(log_probability(std::vector<float>{-10000.0F, 0.0F}, 0), -10000, 1e-9);
}

struct Rig {
  std::unique_ptr<Context> context;
  std::unique_ptr<Engine> engine;
};

Rig make(std::int64_t rows, std::int64_t wanted) {
  static const TinyModel tiny("q8_0", {}, 3);
  Rig rig;
  rig.context = Context::create({});
  EngineOptions engine;
  engine.rows = rows;
  engine.wanted = wanted;
  engine.context = 100;
  const models::Model model = tiny.model({engine.rows, engine.wanted, engine.sequences, engine.context});
  rig.engine = Engine::create(model.program, tiny.store, engine, *rig.context);
  return rig;
}

TEST(LogLikelihoods, AreThoseOfRowsOneByOneAndOfAnyChunks) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < 60; ++i) tokens.push_back((i * 29 + 5) % 100);
  for (const TokenClass token_class : {TokenClass::prompt, TokenClass::generated}) {
    const Rig one = make(1, 1);
    Session session = one.engine->open();
    std::vector<double> expected;
    const std::int64_t row = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      const StepEntry entry{&session, {&tokens[i], 1}, token_class, {&row, 1}};
      one.engine->step({&entry, 1});
      session.commit();
      expected.push_back(log_probability(one.engine->logits(0), tokens[i + 1]));
    }
    ScoreOptions options;
    options.token_class = token_class;
    for (const auto& [rows, wanted] : std::vector<std::pair<int, int>>{{1, 1}, {64, 7}, {16, 16}, {64, 64}}) {
      const Rig rig = make(rows, wanted);
      EXPECT_EQ(log_likelihoods(*rig.engine, tokens, options), expected) << rows << " " << wanted;
    }
  }
}

TEST(LogLikelihoods, NeedTwoTokensAndRoom) {
  const Rig rig = make(8, 8);
  const std::vector<TokenId> tokens(101, 1);
  const auto score = [&](std::size_t count) {
    return log_likelihoods(*rig.engine, std::span(tokens).first(count), ScoreOptions{});
  };
  EXPECT_THAT([&] { score(1); }, ThrowsMessage<InputError>(HasSubstr("expected 2 to 100 tokens (the context), got 1")));
  EXPECT_THAT([&] { score(101); }, ThrowsMessage<InputError>(HasSubstr("got 101")));
  EXPECT_EQ(score(2).size(), 1U);
  EXPECT_EQ(score(100).size(), 99U);
}

}  // namespace
}  // namespace headrace::run
