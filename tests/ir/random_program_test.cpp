// Random Programs: print and parse give the same Program, every op occurs, and the interpreter runs them all.
#include "ir/random_program.hpp"

#include <set>

#include <gtest/gtest.h>

#include "ir/op.hpp"
#include "ir/text.hpp"

namespace headrace::ir {
namespace {

const std::vector<std::string> formats = {"f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "q5_0", "q5_1"};

TEST(RandomProgram, PrintsParsesVerifiesAndRuns) {
  std::set<std::string> seen;
  std::int64_t calls = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const headrace::testing::RandomProgram made = headrace::testing::random_program(seed, formats);
    const std::string text = print(made.program);
    const Program parsed = parse_program(text);
    ASSERT_EQ(parsed, made.program) << text;
    EXPECT_EQ(print(parsed), text);
    for (const Function& function : made.program.functions) {
      for (const Node& node : function.body) {
        if (node.is_call()) {
          ++calls;
        } else {
          seen.insert(node.op->name);
        }
      }
    }
    std::mt19937 random(seed);
    Interpreter interpreter(parsed, [&](const std::string&, const Type& type) {
      Tensor weight;
      for (const Dim& dim : type.shape) weight.shape.push_back(dim.constant());
      std::uniform_real_distribution<float> uniform(-1, 1);
      for (std::int64_t i = 0; i < element_count(weight.shape); ++i) {
        weight.values.push_back(static_cast<double>(uniform(random)));
      }
      return weight;
    });
    const std::vector<RuntimeValue> results = interpreter.run(made.inputs);
    ASSERT_EQ(results.size(), made.errors.size());
    for (const RuntimeValue& result : results) {
      if (const auto* tensor = std::get_if<0>(&result)) {
        for (const double value : (*tensor)->values) ASSERT_LE(std::abs(value), 1.1e4) << text;
      }
    }
  }
  EXPECT_GT(calls, 100);
  // These come of a pass alone: tests/run/fusion_test.cpp has them.
  seen.insert({"linears", "norm_linears", "rope_append"});
  for (const OpDef* op : all_ops()) EXPECT_TRUE(seen.contains(op->name)) << op->name << " never occurs";
}

}  // namespace
}  // namespace headrace::ir
