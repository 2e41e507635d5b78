// The interpreter against values computed by hand or by the textbook formula.
#include "ir/interpreter.hpp"

#include <cmath>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "ir/text.hpp"

namespace headrace::ir {
namespace {

std::shared_ptr<const Tensor> tensor(ElementType element, std::vector<std::int64_t> shape, std::vector<double> values) {
  return std::make_shared<Tensor>(Tensor{element, std::move(shape), std::move(values)});
}

Tensor no_weights(const std::string& name, const Type&) { throw InputError("no weight " + name); }

/// Runs a body over %x: f32[2, 4] and returns the values of its one result.
std::vector<double> evaluate(const std::string& body, const std::string& type, std::vector<double> x) {
  const Program program = parse_program("program p { symbol T in [0, 9] function @main(%x: f32[T, 4]) { %y = " + body +
                                        " : " + type + " return %y } }");
  Interpreter interpreter(program, no_weights);
  const auto results = interpreter.run({{"x", tensor(ElementType::f32, {2, 4}, std::move(x))}});
  return std::get<0>(results.at(0))->values;
}

const std::vector<double> counting = {0, 1, 2, 3, 4, 5, 6, 7};

TEST(Interpreter, Primitives) {
  using testing::ElementsAre;
  EXPECT_THAT(evaluate("reduce_sum(%x) {axis = 0}", "f32[1, 4]", counting), ElementsAre(4, 6, 8, 10));
  EXPECT_THAT(evaluate("reduce_max(%x) {axis = -1}", "f32[T, 1]", counting), ElementsAre(3, 7));
  EXPECT_THAT(evaluate("transpose(%x) {order = [1, 0]}", "f32[4, T]", counting), ElementsAre(0, 4, 1, 5, 2, 6, 3, 7));
  EXPECT_THAT(evaluate("slice(%x) {axis = 1, begin = 1, end = 3}", "f32[T, 2]", counting), ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(evaluate("concat(%x, %x) {axis = 1}", "f32[T, 8]", counting),
              ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7));
  EXPECT_THAT(evaluate("less(%x, %x)", "bool[T, 4]", counting), testing::Each(0));
  EXPECT_THAT(evaluate("divide(%x, %x)", "f32[T, 4]", counting)[0], testing::IsNan());
}

TEST(Interpreter, RoundsToTheElementType) {
  EXPECT_EQ(evaluate("add(%x, %x)", "f32[T, 4]", std::vector<double>(8, static_cast<double>(0.1f)))[0],
            static_cast<double>(0.1f + 0.1f));
  EXPECT_EQ(evaluate("convert(%x) {to = \"f16\"}", "f16[T, 4]", std::vector<double>(8, 1.0 / 3))[0], 0.333251953125);
  EXPECT_EQ(evaluate("convert(%x) {to = \"u8\"}", "u8[T, 4]", std::vector<double>(8, -1.5))[0], 255);
  EXPECT_EQ(evaluate("convert(%x) {to = \"i8\"}", "i8[T, 4]", std::vector<double>(8, 200.0))[0], -56);
  EXPECT_THROW(evaluate("convert(%x) {to = \"i8\"}", "i8[T, 4]", std::vector<double>(8, NAN)), InputError);
}

TEST(Interpreter, SoftmaxAndSilu) {
  const auto y = evaluate("softmax(%x)", "f32[T, 4]", counting);
  const double sum = 1 + std::exp(1) + std::exp(2) + std::exp(3);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(y[i], std::exp(static_cast<double>(i % 4)) / sum, 1e-7);
  EXPECT_NEAR(evaluate("silu(%x)", "f32[T, 4]", counting)[2], 2 / (1 + std::exp(-2)), 1e-7);
}

TEST(Interpreter, EncodeKeepsTheLargestAndRoundsTheRest) {
  const Program program = parse_program(
      "program p { symbol T in [1, 9] function @main(%x: f32[T, 32]) { %e = encode(%x) {to = \"a16\"} : a16[T, 32] "
      "%y = decode(%e) : f32[T, 32] return %y } }");
  std::vector<double> x(32);
  for (std::size_t i = 0; i < 32; ++i) x[i] = static_cast<double>(static_cast<float>(i) * -0.37f);
  Interpreter interpreter(program, no_weights);
  const auto y = std::get<0>(interpreter.run({{"x", tensor(ElementType::f32, {1, 32}, x)}}).at(0))->values;
  const double scale = 31 * 0.37 / 32512;
  EXPECT_NEAR(y[31], x[31], 1e-6);
  for (std::size_t i = 0; i < 32; ++i) EXPECT_NEAR(y[i], x[i], scale / 2 + 1e-6);
}

TEST(Interpreter, AttentionSeesOnlyItsOwnSequenceAndPast) {
  const Program program = parse_program(R"(program p {
    symbol T in [1, 9]
    symbol B in [1, 9]
    symbol P in [1, 9]
    function @main(%q: f32[T, 2, 8], %k: f32[T, 1, 8], %sequence: i32[T], %position: i32[T], %keys: state append f32[1, 8], %values: state append f32[1, 8]) {
      %6 = append(%keys, %k, %sequence, %position) : state append f32[1, 8]
      %7 = append(%values, %k, %sequence, %position) : state append f32[1, 8]
      %8 = attention(%q, %6, %7, %sequence, %position) {scale = 0.25} : f32[T, 2, 8]
      return %8, %6, %7
    }
  })");
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto draw = [&](std::size_t count) {
    std::vector<double> values(count);
    for (double& value : values) value = static_cast<double>(normal(random));
    return values;
  };
  const std::vector<double> q = draw(5 * 16);
  const std::vector<double> k = draw(5 * 8);
  const std::vector<double> sequence = {1, 0, 1, 1, 0};
  const std::vector<double> position = {0, 0, 1, 2, 1};
  const auto empty = std::make_shared<StateValue>(StateValue{ElementType::f32, {1, 8}, {{}, {}}});
  Interpreter interpreter(program, no_weights);
  const auto results = interpreter.run({{"q", tensor(ElementType::f32, {5, 2, 8}, q)},
                                        {"k", tensor(ElementType::f32, {5, 1, 8}, k)},
                                        {"sequence", tensor(ElementType::i32, {5}, sequence)},
                                        {"position", tensor(ElementType::i32, {5}, position)},
                                        {"keys", empty},
                                        {"values", empty}});
  const auto& y = std::get<0>(results.at(0))->values;
  for (std::size_t t = 0; t < 5; ++t) {
    for (std::size_t h = 0; h < 2; ++h) {
      double weight_sum = 0;
      std::vector<double> expected(8, 0);
      for (std::size_t s = 0; s < 5; ++s) {
        if (sequence[s] != sequence[t] || position[s] > position[t]) continue;
        double score = 0;
        for (std::size_t e = 0; e < 8; ++e) score += q[(t * 2 + h) * 8 + e] * k[s * 8 + e];
        const double weight = std::exp(score * 0.25);
        weight_sum += weight;
        for (std::size_t e = 0; e < 8; ++e) expected[e] += weight * k[s * 8 + e];
      }
      for (std::size_t e = 0; e < 8; ++e) EXPECT_NEAR(y[(t * 2 + h) * 8 + e], expected[e] / weight_sum, 1e-5);
    }
  }
  EXPECT_EQ(std::get<1>(results.at(1))->positions(1), 3);
}

/// Scores are 0, so that every visible position weighs 1, and a sink exp(sink).
TEST(Interpreter, AttentionSeesItsWindowAndSinksTakeWeight) {
  const auto run = [](const std::string& attributes, bool has_sinks) {
    const Program program = parse_program(R"(program p { symbol T in [1, 9] symbol B in [1, 1] symbol P in [0, 9]
      function @main(%q: f32[T, 2, 8], %v: f32[T, 1, 8], %sequence: i32[T], %position: i32[T], %sinks: f32[2],
                     %keys: state append f32[1, 8], %values: state append f32[1, 8]) {
        %k2 = append(%keys, %v, %sequence, %position) : state append f32[1, 8]
        %v2 = append(%values, %v, %sequence, %position) : state append f32[1, 8]
        %y = attention(%q, %k2, %v2, %sequence, %position)" +
                                          std::string(has_sinks ? ", %sinks" : "") + ") {scale = 1.0" + attributes +
                                          R"(} : f32[T, 2, 8]
        return %y, %k2, %v2 } })");
    std::vector<double> v;
    for (int t = 0; t < 5; ++t) v.insert(v.end(), 8, t);
    const auto empty = std::make_shared<StateValue>(StateValue{ElementType::f32, {1, 8}, {{}}});
    Interpreter interpreter(program, no_weights);
    const auto results = interpreter.run({{"q", tensor(ElementType::f32, {5, 2, 8}, std::vector<double>(80))},
                                          {"v", tensor(ElementType::f32, {5, 1, 8}, v)},
                                          {"sequence", tensor(ElementType::i32, {5}, {0, 0, 0, 0, 0})},
                                          {"position", tensor(ElementType::i32, {5}, {0, 1, 2, 3, 4})},
                                          {"sinks", tensor(ElementType::f32, {2}, {std::log(2.0), -100})},
                                          {"keys", empty},
                                          {"values", empty}});
    std::vector<double> heads;  // of the last row
    for (const std::size_t h : {0u, 1u}) heads.push_back(std::get<0>(results.at(0))->values[(4 * 2 + h) * 8]);
    return heads;
  };
  const auto near = [](const std::vector<double>& got, double first, double second) {
    EXPECT_NEAR(got[0], first, 1e-6);
    EXPECT_NEAR(got[1], second, 1e-6);
  };
  near(run("", false), 2, 2);
  near(run(", window = 2", false), 3.5, 3.5);
  near(run(", window = 1", false), 4, 4);
  near(run("", true), 10.0 / 7, 2);
  near(run(", window = 3", true), 9.0 / 5, 3);
  EXPECT_THROW(run(", window = -1", false), InputError);
  EXPECT_THROW(run(", window = 16777217", false), InputError);
}

TEST(Interpreter, RopeRotatesPairs) {
  const auto run = [](const std::string& pairing) {
    const Program program = parse_program(R"(program p { symbol T in [1, 9]
      function @main(%x: f32[T, 1, 4], %position: i32[T]) {
        %f = constant() {shape = [2], values = [1.0, 0.5]} : f32[2]
        %t = rope_table(%position, %f) : f32[T, 4]
        %y = rope(%x, %t) {pairing = ")" + pairing +
                                          R"("} : f32[T, 1, 4]
        return %y } })");
    Interpreter interpreter(program, no_weights);
    return std::get<0>(interpreter
                           .run({{"x", tensor(ElementType::f32, {1, 1, 4}, {1, 2, 3, 4})},
                                 {"position", tensor(ElementType::i32, {1}, {3})}})
                           .at(0))
        ->values;
  };
  const auto adjacent = run("adjacent");
  EXPECT_NEAR(adjacent[0], 1 * std::cos(3) - 2 * std::sin(3), 1e-6);
  EXPECT_NEAR(adjacent[1], 2 * std::cos(3) + 1 * std::sin(3), 1e-6);
  EXPECT_NEAR(adjacent[3], 4 * std::cos(1.5) + 3 * std::sin(1.5), 1e-6);
  const auto halves = run("halves");
  EXPECT_NEAR(halves[0], 1 * std::cos(3) - 3 * std::sin(3), 1e-6);
  EXPECT_NEAR(halves[3], 4 * std::cos(1.5) + 2 * std::sin(1.5), 1e-6);
}

TEST(Interpreter, RefusesInputsThatDoNotFit) {
  const Program program = parse_program(
      "program p { symbol T in [1, 2] function @main(%x: f32[T, 4], %i: i32[T]) { %y = gather(%x, %i) : f32[T, 4] "
      "return %y } }");
  Interpreter interpreter(program, no_weights);
  const auto x = tensor(ElementType::f32, {2, 4}, counting);
  EXPECT_THROW(interpreter.run({{"x", x}}), InputError);
  EXPECT_THROW(interpreter.run({{"x", x}, {"i", x}}), InputError);
  EXPECT_THROW(interpreter.run({{"x", x}, {"i", tensor(ElementType::i32, {1}, {0})}}), InputError);
  EXPECT_THROW(interpreter.run({{"x", x}, {"i", tensor(ElementType::i32, {2}, {0, 2})}}), InputError);
  EXPECT_THROW(interpreter.run({{"x", tensor(ElementType::f32, {3, 4}, std::vector<double>(12))},
                                {"i", tensor(ElementType::i32, {3}, {0, 0, 0})}}),
               InputError);
}

}  // namespace
}  // namespace headrace::ir
