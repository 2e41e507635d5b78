// Bytes and operations of a step, counted by hand from the shapes; and the limits that follow from rates.
#include "measure/work.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "ir/op.hpp"
#include "measure/tiny_engine.hpp"

namespace headrace::measure {
namespace {

// TinyShape: L = 2, D = 64, H = 4, K = 2, E = 16, F = 96, V = 100; 20 bytes hold 32 numbers of q4_1.
constexpr double layer_elements = 64 * 64 + 2 * 32 * 64 + 64 * 64 + 3 * 64 * 96;
constexpr double output_elements = 100 * 64;
constexpr double norm_bytes = 5 * 64 * 4;
/// A row that joined linears normalize or encode counts D operations: three times a layer, and once for the logits.
constexpr double layer_preparation = 3 * 64;
constexpr double output_preparation = 64;
constexpr double kv_bytes_per_position = 2 * 2 * (2 * 16) * 2;

TEST(StepWork, CountsTheBytesAndOperationsOfADecodeStep) {
  const TinyEngine tiny;
  const Work work =
      step_work(tiny.model.program, tiny.engine->plan(), *tiny.catalog, {1, 1, 1, /*past=*/9}, /*experts_used=*/0);
  EXPECT_EQ(work.weight_bytes, (2 * layer_elements + output_elements) / 32 * 20 + norm_bytes)
      << "the tied embedding once and whole";
  EXPECT_EQ(work.kv_bytes, 10 * kv_bytes_per_position) << "its own position included";
  EXPECT_EQ(work.bytes(), work.weight_bytes + work.kv_bytes);
  EXPECT_EQ(work.int8_ops, 2 * (2 * layer_elements + output_elements));
  EXPECT_EQ(work.f32_flops, 2 * (4.0 * 10 * 64 + layer_preparation) + output_preparation)
      << "scores and sums of both layers over 10 positions";
}

TEST(StepWork, CountsRowsAndSequences) {
  const TinyEngine tiny;
  const auto work = [&](const StepSize& step) {
    return step_work(tiny.model.program, tiny.engine->plan(), *tiny.catalog, step, 0);
  };
  const Work batch = work({2, 2, 2, 9});
  const Work one = work({1, 1, 1, 9});
  EXPECT_EQ(batch.weight_bytes, one.weight_bytes) << "one pass serves the batch";
  EXPECT_EQ(batch.kv_bytes, 2 * one.kv_bytes);
  EXPECT_EQ(batch.int8_ops, 2 * one.int8_ops);
  EXPECT_EQ(batch.f32_flops, 2 * one.f32_flops);
  // Row i of a prompt sees i + 1 positions: 4.5 in the mean of 8, and its last row alone has logits.
  const Work prompt = work({8, 1, 1, 0});
  EXPECT_EQ(prompt.int8_ops, 2 * (8 * 2 * layer_elements + output_elements));
  EXPECT_EQ(prompt.f32_flops,
            2 * (4.0 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8) * 64 + 8 * layer_preparation) + output_preparation);
  EXPECT_EQ(work({8, 0, 1, 0}).int8_ops, 2 * 8 * 2 * layer_elements);
}

TEST(StepWork, CountsRowsOfAnEmbeddingThatIsNoOutput) {
  TinyEngine tiny;
  // The same Program but with a Weight of its own for the output.
  ir::Function& entry = tiny.model.program.functions.back();
  ir::ValueId embedding = -1;
  for (ir::Node& node : entry.body) {
    if (!node.is_call() && node.op->name == "embedding") embedding = node.operands[0];
  }
  ASSERT_GE(embedding, 0);
  const auto output = static_cast<ir::ValueId>(entry.values.size());
  entry.values.push_back({"output.weight", entry.type(embedding)});
  entry.parameters.push_back(output);
  for (ir::Node& node : entry.body) {
    if (!node.is_call() && node.op->name == "linear") node.operands[1] = output;
  }
  const Work work = step_work(tiny.model.program, tiny.engine->plan(), *tiny.catalog, {2, 2, 2, 0}, 0);
  EXPECT_EQ(work.weight_bytes, (2 * layer_elements + output_elements + 2 * 64) / 32 * 20 + norm_bytes);
}

TEST(TouchedShare, IsTheExpectedShareOfExperts) {
  EXPECT_EQ(touched_share(64, 8, 1), 0.125);
  EXPECT_DOUBLE_EQ(touched_share(64, 8, 2), 1 - 0.875 * 0.875);
  EXPECT_EQ(touched_share(64, 64, 1), 1);
  EXPECT_EQ(touched_share(64, 0, 1), 1) << "unknown: all";
  EXPECT_THROW(touched_share(0, 1, 1), InternalError);
}

TEST(StepLimit, IsTheLongerOfReadingAndComputing) {
  const Rates rates = {.read_bytes_per_s = 10, .int8_ops_per_s = 100, .bf16_flops_per_s = 50, .f32_flops_per_s = 20};
  const StepLimit memory = step_limit({.weight_bytes = 20, .kv_bytes = 10, .int8_ops = 100, .f32_flops = 20}, rates);
  EXPECT_DOUBLE_EQ(memory.seconds, 3);
  EXPECT_EQ(memory.by, "memory");
  const StepLimit int8 = step_limit({.weight_bytes = 10, .int8_ops = 300, .bf16_flops = 50, .f32_flops = 20}, rates);
  EXPECT_DOUBLE_EQ(int8.seconds, 3 + 1 + 1) << "kinds of arithmetic share the ports";
  EXPECT_EQ(int8.by, "int8");
  EXPECT_EQ(step_limit({.bf16_flops = 100, .f32_flops = 20}, rates).by, "bf16");
  EXPECT_EQ(step_limit({.bf16_flops = 10, .f32_flops = 20}, rates).by, "f32");
}

TEST(StepLimit, ComputesInF32WhatHasNoUnit) {
  const Rates rates = {.read_bytes_per_s = 10, .int8_ops_per_s = 100, .bf16_flops_per_s = 0, .f32_flops_per_s = 20};
  EXPECT_DOUBLE_EQ(step_limit({.bf16_flops = 100}, rates).seconds, 5);
  EXPECT_THROW(step_limit({}, Rates{}), InternalError);
}

}  // namespace
}  // namespace headrace::measure
