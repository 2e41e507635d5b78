// Generation: the same tokens as steps taken by hand, and an end for each reason that there is.
#include "run/generate.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "run/tiny_model.hpp"

namespace headrace::run {
namespace {

using headrace::testing::TinyModel;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

struct Rig {
  std::unique_ptr<Context> context;
  std::unique_ptr<Engine> engine;
};

Rig make(std::int64_t rows, std::int64_t positions) {
  static const TinyModel tiny("q4_1", {}, 7);
  Rig rig;
  ContextOptions options;
  options.threads = 1;
  rig.context = Context::create(options);
  EngineOptions engine;
  engine.rows = rows;
  engine.wanted = 1;
  engine.context = positions;
  engine.kv_positions = 4 * positions;
  const models::Model model = tiny.model({engine.rows, engine.wanted, engine.sequences, engine.context});
  rig.engine = Engine::create(model.program, tiny.store, engine, *rig.context);
  return rig;
}

std::vector<TokenId> prompt_of(std::int64_t count) {
  std::vector<TokenId> tokens;
  for (std::int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>((i * 37 + 11) % 100));
  return tokens;
}

GenerateOptions greedy(std::int64_t max_tokens) {
  GenerateOptions options;
  options.sampler.temperature = 0;
  options.max_tokens = max_tokens;
  return options;
}

/// Greedy tokens by steps of one row.
std::vector<TokenId> by_hand(Engine& engine, const std::vector<TokenId>& prompt, std::int64_t count) {
  Session session = engine.open();
  const std::int64_t row = 0;
  const auto step = [&](TokenId token, TokenClass token_class) {
    const StepEntry entry{&session, {&token, 1}, token_class, {&row, 1}};
    engine.step({&entry, 1});
    session.commit();
  };
  for (const TokenId token : prompt) step(token, TokenClass::prompt);
  std::vector<TokenId> tokens;
  while (std::ssize(tokens) < count) {
    const auto logits = engine.logits(0);
    tokens.push_back(static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
    step(tokens.back(), TokenClass::generated);
  }
  return tokens;
}

TEST(Generate, EqualsStepsByHandHoweverThePromptIsCut) {
  const auto prompt = prompt_of(37);
  const Rig whole = make(64, 128);
  const auto expected = by_hand(*whole.engine, prompt, 12);
  for (const std::int64_t rows : {1, 8, 36, 37, 64}) {
    const Rig rig = make(rows, 128);
    Session session = rig.engine->open();
    std::vector<TokenId> streamed;
    std::vector<std::int64_t> done;
    GenerateOptions options = greedy(12);
    options.on_token = [&](TokenId token) { streamed.push_back(token); };
    options.on_prefill = [&](std::int64_t positions, std::int64_t) { done.push_back(positions); };
    const GenerateResult result = generate(*rig.engine, session, prompt, options);
    EXPECT_THAT(result.tokens, ElementsAreArray(expected)) << rows;
    EXPECT_EQ(streamed, result.tokens);
    EXPECT_EQ(result.finish_reason, FinishReason::length);
    EXPECT_EQ(result.prompt_tokens, 37);
    EXPECT_EQ(result.prefill_tokens, 37);
    EXPECT_EQ(result.decode_steps, 11);
    EXPECT_EQ(std::ssize(done), (37 + rows - 1) / rows);
    EXPECT_EQ(done.back(), 37);
    EXPECT_EQ(session.length(), 37 + 11) << "all tokens but the last are committed";
  }
}

TEST(Generate, GoesOnInTheSameSession) {
  const Rig rig = make(64, 128);
  const auto prompt = prompt_of(20);
  Session session = rig.engine->open();
  const auto first = generate(*rig.engine, session, prompt, greedy(5)).tokens;
  // The last token was chosen and not computed: it is the next prompt's first.
  const std::vector<TokenId> next = {first.back(), 3, 4};
  const auto second = generate(*rig.engine, session, next, greedy(5));
  EXPECT_EQ(second.prompt_tokens, 3);
  EXPECT_EQ(session.length(), 20 + 4 + 3 + 4);
}

TEST(Generate, StopsAtAStopTokenWhichIsNoPartOfTheText) {
  const Rig rig = make(64, 128);
  const auto prompt = prompt_of(10);
  const auto expected = by_hand(*rig.engine, prompt, 8);
  const TokenId stop = expected[5];
  const auto first = std::find(expected.begin(), expected.end(), stop);
  GenerateOptions options = greedy(100);
  options.is_stop = [&](TokenId token) { return token == stop; };
  Session session = rig.engine->open();
  const GenerateResult result = generate(*rig.engine, session, prompt, options);
  EXPECT_EQ(result.finish_reason, FinishReason::stop);
  EXPECT_EQ(result.tokens, std::vector<TokenId>(expected.begin(), first));
  EXPECT_EQ(session.length(), 10 + std::ssize(result.tokens));
}

TEST(Generate, EndsAtItsLimits) {
  const Rig rig = make(64, 16);
  for (const auto& [length, max_tokens, expected] : std::vector<std::array<std::int64_t, 3>>{
           {10, 0, 0}, {10, 1, 1}, {10, 7, 7}, {10, 8, 7}, {10, 1000, 7}, {16, 5, 1}, {15, 5, 2}}) {
    Session session = rig.engine->open();
    const GenerateResult result = generate(*rig.engine, session, prompt_of(length), greedy(max_tokens));
    EXPECT_EQ(std::ssize(result.tokens), expected) << length << " " << max_tokens;
    EXPECT_EQ(result.finish_reason, FinishReason::length);
    EXPECT_LE(session.length(), 16);
  }
}

TEST(Generate, RefusesAPromptThatDoesNotFit) {
  const Rig rig = make(64, 16);
  Session session = rig.engine->open();
  EXPECT_THAT([&] { generate(*rig.engine, session, {}, greedy(1)); },
              ThrowsMessage<InputError>(HasSubstr("the prompt has no tokens")));
  EXPECT_THAT([&] { generate(*rig.engine, session, prompt_of(17), greedy(1)); },
              ThrowsMessage<InputError>(HasSubstr("the prompt has 17 tokens; expected at most 16")));
  generate(*rig.engine, session, prompt_of(10), greedy(1));
  EXPECT_THAT([&] { generate(*rig.engine, session, prompt_of(7), greedy(1)); },
              ThrowsMessage<InputError>(HasSubstr("at most 6, since the context holds 16 and 10 are used")));
  EXPECT_EQ(session.length(), 10);
}

TEST(Generate, CanBeCancelledBetweenSteps) {
  const Rig rig = make(8, 128);
  const auto prompt = prompt_of(20);
  std::atomic<bool> cancel{false};
  GenerateOptions options = greedy(50);
  options.cancel = &cancel;
  options.on_token = [&, count = 0](TokenId) mutable { cancel = ++count == 3; };
  Session session = rig.engine->open();
  const GenerateResult some = generate(*rig.engine, session, prompt, options);
  EXPECT_EQ(some.finish_reason, FinishReason::cancelled);
  EXPECT_EQ(some.tokens, by_hand(*rig.engine, prompt, 3));
  EXPECT_EQ(session.length(), 20 + 2);

  cancel = false;
  options.on_prefill = [&](std::int64_t done, std::int64_t) { cancel = done >= 16; };
  Session other = rig.engine->open();
  // Prefix sharing would leave too few steps to cancel between.
  auto fresh = prompt;
  fresh[0] = 99;
  const GenerateResult none = generate(*rig.engine, other, fresh, options);
  EXPECT_EQ(none.finish_reason, FinishReason::cancelled);
  EXPECT_TRUE(none.tokens.empty());
  EXPECT_EQ(none.prefill_tokens, 16);
  EXPECT_EQ(other.length(), 16);
}

TEST(Generate, SharesAPrefixWithoutChangingTheText) {
  const Rig rig = make(64, 256);
  const auto prompt = prompt_of(150);
  Session first = rig.engine->open();
  const GenerateResult expected = generate(*rig.engine, first, prompt, greedy(8));
  EXPECT_EQ(expected.shared_tokens, 0);
  Session second = rig.engine->open();
  const GenerateResult shared = generate(*rig.engine, second, prompt, greedy(8));
  EXPECT_GT(shared.shared_tokens, 0);
  EXPECT_EQ(shared.shared_tokens + shared.prefill_tokens, 150);
  EXPECT_EQ(shared.tokens, expected.tokens);
}

TEST(Generate, IsReproducibleBySeed) {
  const Rig rig = make(64, 128);
  GenerateOptions options = greedy(20);
  options.sampler.temperature = 1.5;
  const auto with_seed = [&](std::uint64_t seed) {
    options.sampler.seed = seed;
    Session session = rig.engine->open();
    return generate(*rig.engine, session, prompt_of(5), options).tokens;
  };
  EXPECT_EQ(with_seed(1), with_seed(1));
  EXPECT_NE(with_seed(1), with_seed(2));
}

TEST(FinishReason, HasNames) {
  EXPECT_EQ(finish_reason_name(FinishReason::stop), "stop");
  EXPECT_EQ(finish_reason_name(FinishReason::length), "length");
  EXPECT_EQ(finish_reason_name(FinishReason::cancelled), "cancelled");
}

}  // namespace
}  // namespace headrace::run
