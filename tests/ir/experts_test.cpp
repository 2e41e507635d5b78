// The ops of mixtures of experts against values worked out by hand, and what they refuse.
#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "ir/interpreter.hpp"
#include "ir/text.hpp"

namespace headrace::ir {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<const Tensor> tensor(ElementType element, std::vector<std::int64_t> shape, std::vector<double> values) {
  return std::make_shared<Tensor>(Tensor{element, std::move(shape), std::move(values)});
}

/// Runs one op over parameters with the given values; Weights by name.
std::vector<double> evaluate(const std::string& parameters, const std::string& op, const std::string& type,
                             const std::map<std::string, RuntimeValue>& inputs,
                             const std::map<std::string, Tensor>& weights = {}) {
  const Program program = parse_program("program p { symbol T in [0, 9] function @main(" + parameters +
                                        ") { %result = " + op + " : " + type + " return %result } }");
  EXPECT_EQ(parse_program(print(program)), program);
  Interpreter interpreter(program, [&](const std::string& name, const Type&) { return weights.at(name); });
  return std::get<0>(interpreter.run(inputs).at(0))->values;
}

TEST(Experts, TopKTakesTheLargestFirstAndOfEqualsTheLowerId) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  const auto top = [&](std::vector<double> x, const std::string& k) {
    return evaluate("%x: f32[T, 4]", "top_k(%x) {k = " + k + "}", "i32[T, " + k + "]",
                    {{"x", tensor(ElementType::f32, {2, 4}, std::move(x))}});
  };
  EXPECT_THAT(top({1, 3, 2, 0, 5, 5, 7, 7}, "2"), ElementsAre(1, 2, 2, 3));
  EXPECT_THAT(top({1, 3, 2, 0, 5, 5, 7, 7}, "4"), ElementsAre(1, 2, 0, 3, 2, 3, 0, 1));
  EXPECT_THAT(top({nan, -infinity, nan, infinity, 0, -0.0, 0, nan}, "4"), ElementsAre(3, 1, 0, 2, 0, 1, 2, 3));
}

TEST(Experts, TakeAlongReadsEachRowByItsIds) {
  const std::map<std::string, RuntimeValue> inputs = {{"x", tensor(ElementType::f32, {2, 3}, {10, 11, 12, 20, 21, 22})},
                                                      {"ids", tensor(ElementType::i32, {2, 2}, {2, 0, 1, 1})}};
  const std::string parameters = "%x: f32[T, 3], %ids: i32[T, 2]";
  EXPECT_THAT(evaluate(parameters, "take_along(%x, %ids)", "f32[T, 2]", inputs), ElementsAre(12, 10, 21, 21));
  for (const double bad : {-1.0, 3.0}) {
    auto wrong = inputs;
    wrong["ids"] = tensor(ElementType::i32, {2, 2}, {2, 0, bad, 1});
    EXPECT_THROW(evaluate(parameters, "take_along(%x, %ids)", "f32[T, 2]", wrong), InputError);
  }
}

TEST(Experts, EachSlotGoesThroughItsExpert) {
  // Expert e is [[e + 1, 0], [0, 10 (e + 1)], [1, 1]].
  Tensor w{ElementType::f32, {3, 3, 2}, {}};
  for (const double e : {1.0, 2.0, 3.0}) w.values.insert(w.values.end(), {e, 0, 0, 10 * e, 1, 1});
  const Tensor bias{ElementType::f32, {3, 3, 1}, {100, 200, 300, 400, 500, 600, 700, 800, 900}};
  const std::map<std::string, Tensor> weights = {{"w", w}, {"b", bias}};
  const auto ids = tensor(ElementType::i32, {2, 2}, {2, 0, 1, 1});
  const std::string common = "%ids: i32[T, 2], %w: weight f32[3, 3, 2]";
  EXPECT_THAT(evaluate("%x: f32[T, 2], " + common, "expert_linear(%x, %w, %ids)", "f32[T, 2, 3]",
                       {{"x", tensor(ElementType::f32, {2, 2}, {1, 2, 3, 4})}, {"ids", ids}}, weights),
              ElementsAre(3, 60, 3, 1, 20, 3, 6, 80, 7, 6, 80, 7));
  EXPECT_THAT(evaluate("%x: f32[T, 2, 2], " + common + ", %b: weight f32[3, 3, 1]", "expert_linear(%x, %w, %ids, %b)",
                       "f32[T, 2, 3]",
                       {{"x", tensor(ElementType::f32, {2, 2, 2}, {1, 2, 1, 0, 3, 4, 0, 1})}, {"ids", ids}}, weights),
              ElementsAre(703, 860, 903, 101, 200, 301, 406, 580, 607, 400, 520, 601));
  EXPECT_THROW(evaluate("%x: f32[T, 2], " + common, "expert_linear(%x, %w, %ids)", "f32[T, 2, 3]",
                        {{"x", tensor(ElementType::f32, {2, 2}, {1, 2, 3, 4})},
                         {"ids", tensor(ElementType::i32, {2, 2}, {2, 3, 1, 1})}},
                        weights),
               InputError);
}

TEST(Experts, WeightedSumAndClampedSwiglu) {
  EXPECT_THAT(evaluate("%y: f32[T, 2, 3], %w: f32[T, 2]", "weighted_sum(%y, %w)", "f32[T, 3]",
                       {{"y", tensor(ElementType::f32, {1, 2, 3}, {1, 2, 3, 4, 5, 6})},
                        {"w", tensor(ElementType::f32, {1, 2}, {0.5, 10})}}),
              ElementsAre(40.5, 51, 61.5));
  const auto y = evaluate(
      "%g: f32[T], %u: f32[T]", "clamped_swiglu(%g, %u) {alpha = 2.0, limit = 3.0}", "f32[T]",
      {{"g", tensor(ElementType::f32, {4}, {1, 9, -9, 2})}, {"u", tensor(ElementType::f32, {4}, {2, 1, 1, -8})}});
  const auto expected = [](double g, double u) { return g / (1 + std::exp(-2 * g)) * (u + 1); };
  EXPECT_NEAR(y[0], expected(1, 2), 1e-6);
  EXPECT_NEAR(y[1], expected(3, 1), 1e-6) << "the gate is cut above";
  EXPECT_NEAR(y[2], expected(-9, 1), 1e-6) << "and not below";
  EXPECT_NEAR(y[3], expected(2, -3), 1e-6) << "the other factor on both sides";
}

TEST(Experts, RefuseWhatDoesNotFit) {
  const auto refuses = [](const std::string& parameters, const std::string& op, const std::string& message) {
    try {
      parse_program("program p { symbol T in [0, 9] function @main(" + parameters + ") { %result = " + op +
                    " : f32[T] return %result } }");
      ADD_FAILURE() << op << " was accepted";
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(message));
    }
  };
  refuses("%x: f32[T, 4]", "top_k(%x) {k = 5}", "[top_k] expected k in [1, 4], got 5");
  refuses("%x: f32[T, 4]", "top_k(%x) {k = 0}", "[top_k] expected k in [1, 4], got 0");
  refuses("%x: f32[4, T]", "top_k(%x) {k = 1}", "[top_k] expected a last axis of constant size, got f32[4, T]");
  refuses("%x: f32[T, 4], %i: i32[4]", "take_along(%x, %i)", "[take_along] expected ids of the tensor's rank");
  refuses("%x: f32[T, 4], %i: i32[2, 4]", "take_along(%x, %i)", "[take_along] expected ids [T, 4], got i32[2, 4]");
  const std::string two = "%x: f32[T, 4], %w: weight f32[3, 5, 4], %i: i32[T, 2]";
  refuses("%x: f32[T, 3], %w: weight f32[3, 5, 4], %i: i32[T, 2]", "expert_linear(%x, %w, %i)",
          "[expert_linear] expected [T, 4] or [T, 2, 4] as operand 0, got f32[T, 3]");
  refuses("%x: f32[T, 4], %w: weight f32[5, 4], %i: i32[T, 2]", "expert_linear(%x, %w, %i)",
          "expected a Weight of rank 3 as operand 1");
  refuses(two + ", %b: weight f32[3, 4, 1]", "expert_linear(%x, %w, %i, %b)",
          "[expert_linear] expected a bias [3, 5, 1], got weight f32[3, 4, 1]");
  refuses("%y: f32[T, 2, 3], %w: f32[T, 3]", "weighted_sum(%y, %w)",
          "[weighted_sum] expected weights [T, 2], got f32[T, 3]");
  refuses("%g: f32[T], %u: f32[T]", "clamped_swiglu(%g, %u) {alpha = 1.0, limit = 0.0}",
          "[clamped_swiglu] expected a limit above 0, got 0");
}

}  // namespace
}  // namespace headrace::ir
