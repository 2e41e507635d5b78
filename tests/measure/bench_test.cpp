// What a Bench does, not how fast: sessions, peers in turn, counts; and the report's arithmetic and fields.
#include "measure/bench.hpp"

#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "measure/report.hpp"
#include "measure/tiny_engine.hpp"

namespace headrace::measure {
namespace {

using ::testing::HasSubstr;

constexpr Rates rates = {
    .read_bytes_per_s = 1e9, .int8_ops_per_s = 1e12, .bf16_flops_per_s = 0, .f32_flops_per_s = 1e10};

TEST(Bench, RunsEveryTestOnOneEngine) {
  TinyEngine tiny;
  BenchOptions options;
  options.repeats = 3;
  std::vector<std::int64_t> filled;
  options.on_progress = [&](std::string_view what, std::int64_t done, std::int64_t) {
    if (what == "filling to the depth") filled.push_back(done);
  };
  Bench bench(*tiny.engine, tiny.model.program, rates, {}, options);
  const TestResult prefill = bench.run({TestKind::prefill, 20, 0, 1});
  EXPECT_EQ(prefill.seconds.count, 3U);
  EXPECT_GT(prefill.seconds.smallest, 0);
  EXPECT_TRUE(filled.empty());
  const TestResult one = bench.run({TestKind::decode, 3, 10, 1});
  EXPECT_EQ(filled, (std::vector<std::int64_t>{8, 10})) << "in steps of 8 rows";
  const TestResult two = bench.run({TestKind::decode, 3, 10, 2});
  EXPECT_EQ(filled, (std::vector<std::int64_t>{8, 10, 8, 10})) << "only the second sequence";
  const TestResult deep = bench.run({TestKind::decode, 4, 60, 2});
  EXPECT_EQ(deep.seconds.count, 3U);
  for (const TestResult& each : {prefill, one, two, deep}) {
    EXPECT_GT(each.limit_s, 0);
    EXPECT_TRUE(std::isfinite(each.limit_s));
    EXPECT_GT(each.read_bytes_per_s, 0);
    EXPECT_LE(each.outside_kernels_share, 1);
    EXPECT_GT(each.outside_kernels_share, 0);
  }
  EXPECT_EQ(one.tokens(), 3);
  EXPECT_EQ(two.tokens(), 6);
  EXPECT_EQ(two.work.weight_bytes, one.work.weight_bytes);
  EXPECT_EQ(two.work.kv_bytes, 2 * one.work.kv_bytes);
  // Steps at 10, 11 and 12 positions read one more each.
  EXPECT_EQ(one.work.kv_bytes, (11 + 12 + 13) * 256);
  EXPECT_EQ(one.read_buffer_bytes, static_cast<std::uint64_t>(one.work.bytes() / 3) / 1024 * 1024);
}

BenchReport sample_report() {
  BenchReport report;
  report.model = "m.gguf";
  report.isa = "avx2";
  report.threads = 2;
  report.rates = rates;
  report.peers = {{"llama.cpp", "1"}, {"openvino", "2"}};
  TestResult result;
  result.test = {TestKind::decode, 10, 100, 4};
  const std::vector<double> seconds = {2, 1, 4};
  result.seconds = summarize(seconds);
  const std::vector<double> peer_seconds = {5};
  result.peers = {{"llama.cpp", summarize(peer_seconds)}};
  result.work = {.weight_bytes = 1000, .kv_bytes = 500, .int8_ops = 70, .bf16_flops = 0, .f32_flops = 30};
  result.read_bytes_per_s = 2e9;
  result.read_buffer_bytes = 1 << 20;
  result.limit_s = 0.5;
  result.limited_by = "memory";
  result.outside_kernels_share = 0.1;
  report.results = {result};
  return report;
}

TEST(BenchReport, HasRatesOfAllAndOfEachSequence) {
  const auto json = to_json(sample_report());
  const auto& machine = json.at("machine");
  EXPECT_EQ(machine.at("isa"), "avx2");
  EXPECT_EQ(machine.at("read_bytes_per_s"), 1e9);
  EXPECT_EQ(machine.at("int8_ops_per_s"), 1e12);
  EXPECT_EQ(machine.at("bf16_flops_per_s"), 0);
  EXPECT_EQ(machine.at("f32_flops_per_s"), 1e10);
  const auto& result = json.at("results").at(0);
  EXPECT_EQ(result.at("test"), "decode");
  EXPECT_EQ(result.at("tokens"), 10);
  EXPECT_EQ(result.at("depth"), 100);
  EXPECT_EQ(result.at("sequences"), 4);
  EXPECT_EQ(result.at("tokens_per_s"), 20) << "40 tokens in the median of 2 s";
  EXPECT_EQ(result.at("tokens_per_s_each"), 5);
  EXPECT_EQ(result.at("limit"), 80);
  EXPECT_EQ(result.at("share_of_limit"), 0.25);
  EXPECT_EQ(result.at("weight_bytes"), 100) << "of a step";
  EXPECT_EQ(result.at("spread").at("smallest"), 10);
  EXPECT_EQ(result.at("spread").at("largest"), 40);
  EXPECT_EQ(result.at("spread").at("lower"), 40 / 3.0);
  EXPECT_EQ(result.at("peers").size(), 1U);
  EXPECT_EQ(result.at("peers").at(0).at("tokens_per_s"), 8);
  EXPECT_EQ(result.at("peers").at(0).at("ratio"), 2.5);
}

TEST(BenchReport, IsATableForPeople) {
  const std::string text = to_text(sample_report());
  EXPECT_THAT(text, HasSubstr("decode 10 at 100 x 4"));
  EXPECT_THAT(text, HasSubstr("25.0 %"));
  EXPECT_THAT(text, HasSubstr("openvino"));
  EXPECT_THAT(text, HasSubstr("2.50"));
}

}  // namespace
}  // namespace headrace::measure
