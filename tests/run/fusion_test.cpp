// What compile/fuse joins computes the same bits as what it replaces, and leaves few barriers.
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/context.hpp"
#include "ir/op.hpp"
#include "ir/text.hpp"
#include "kernels/catalog.hpp"
#include "kernels/wrapped_catalog.hpp"
#include "run/engine.hpp"
#include "run/tiny_model.hpp"

namespace headrace::run {
namespace {

using headrace::testing::TinyModel;
using headrace::testing::TinyShape;
using headrace::testing::WrappedCatalog;

/// Has no kernels for what the pass puts in, so that it puts nothing in.
class UnfusedCatalog final : public WrappedCatalog {
 public:
  using WrappedCatalog::WrappedCatalog;
  [[nodiscard]] std::optional<compile::Kernel> find(const ir::OpDef& op, std::span<const ir::Type> operands,
                                                    const ir::Attributes& attributes) const override {
    const std::set<std::string> fused = {"linears", "norm_linears", "rope_append"};
    return fused.contains(op.name) ? std::nullopt : WrappedCatalog::find(op, operands, attributes);
  }
};

struct Loaded {
  std::unique_ptr<Context> context;
  std::unique_ptr<Engine> engine;
};

// Heads of 32 columns, which two workers cannot halve; 192 columns of x make 21 rows the most that each worker prepares
// alone.
constexpr TinyShape shape = {.layers = 3, .width = 192, .heads = 6, .kv_heads = 3, .feed_forward = 224};

ir::Program program_of(const TinyModel& tiny, const EngineOptions& options, const std::string& pairing) {
  ir::Program program = tiny.model({options.rows, options.wanted, options.sequences, options.context}).program;
  for (ir::Function& function : program.functions) {
    for (ir::Node& node : function.body) {
      if (!node.is_call() && node.op->name == "rope") node.attributes["pairing"] = pairing;
    }
  }
  return program;
}

Loaded make(const TinyModel& tiny, const std::string& pairing, kernels::Isa isa, int threads, bool fused) {
  ContextOptions context_options;
  context_options.threads = threads;
  Loaded setup;
  setup.context = Context::create(context_options);
  EngineOptions options;
  options.rows = options.wanted = 80;
  options.context = 160;
  options.isa = isa;
  auto catalog = kernels::make_catalog(isa);
  if (!fused) catalog = std::make_unique<UnfusedCatalog>(std::move(catalog));
  setup.engine =
      Engine::create(program_of(tiny, options, pairing), tiny.store, options, *setup.context, std::move(catalog));
  return setup;
}

std::vector<float> logits(Engine& engine, std::size_t chunk) {
  std::mt19937 random(7);
  std::vector<TokenId> tokens(150);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 100);
  std::vector<std::int64_t> rows(chunk);
  for (std::size_t i = 0; i < chunk; ++i) rows[i] = static_cast<std::int64_t>(i);
  Session session = engine.open();
  std::vector<float> all;
  for (std::size_t begin = 0; begin < tokens.size(); begin += chunk) {
    const std::size_t count = std::min(chunk, tokens.size() - begin);
    const StepEntry entry{&session, std::span(tokens).subspan(begin, count), TokenClass::generated,
                          std::span(rows).first(count)};
    engine.step({&entry, 1});
    for (std::size_t i = 0; i < count; ++i) {
      const auto row = engine.logits(static_cast<std::int64_t>(i));
      all.insert(all.end(), row.begin(), row.end());
    }
    session.commit();
  }
  return all;
}

std::multiset<std::string> ops_of(const compile::Plan& plan) {
  std::multiset<std::string> ops;
  for (const compile::PlanStep& step : plan.templates.front().steps) ops.insert(step.op);
  return ops;
}

using Parameter = std::tuple<std::string, std::string>;
class Fusion : public ::testing::TestWithParam<Parameter> {};

TEST_P(Fusion, ChangesNoBit) {
  const auto& [format, pairing] = GetParam();
  const TinyModel tiny(format, shape, 1);
  const Loaded plain = make(tiny, pairing, kernels::Isa::portable, 1, false);
  EXPECT_EQ(ops_of(plain.engine->plan()).count("norm_linears"), 0U);
  const std::vector<float> expected = logits(*plain.engine, 1);
  for (const kernels::Isa isa : kernels::available_isas()) {
    for (const int threads : {1, 2, 3}) {
      for (const bool fused : {true, false}) {
        const Loaded setup = make(tiny, pairing, isa, threads, fused);
        for (const std::size_t chunk : {1, 7, 80}) {
          const std::vector<float> result = logits(*setup.engine, chunk);
          ASSERT_EQ(result.size(), expected.size());
          EXPECT_EQ(std::memcmp(result.data(), expected.data(), expected.size() * sizeof(float)), 0)
              << kernels::isa_name(isa) << ", " << setup.context->threads().workers() << " threads, chunks of " << chunk
              << (fused ? ", fused" : ", not fused");
        }
      }
    }
  }
}

TEST_P(Fusion, LeavesFiveBarriersALayer) {
  const auto& [format, pairing] = GetParam();
  const TinyModel tiny(format, shape, 1);
  const Loaded setup = make(tiny, pairing, kernels::Isa::portable, 1, true);
  const compile::Plan& plan = setup.engine->plan();
  const std::multiset<std::string> ops = ops_of(plan);
  EXPECT_EQ(ops.count("norm_linears"), 2U);
  EXPECT_EQ(ops.count("rope_append"), 1U);
  EXPECT_EQ(ops.count("rms_norm"), 0U);
  const auto catalog = kernels::make_catalog(kernels::Isa::portable);
  const compile::BoundPlan bound = compile::bind(plan, *catalog, plan.limits.sizes);
  std::int64_t barriers = 0;
  for (const compile::BoundStep& step : bound.steps) barriers += step.barrier_before ? 1 : 0;
  // Beside the layers: behind the embedding of tokens and the last layer's sum, and before the logits.
  EXPECT_LE(barriers, 5 * shape.layers + 3) << ir::print(plan.program);
}

INSTANTIATE_TEST_SUITE_P(FormatsAndPairings, Fusion,
                         ::testing::Combine(::testing::Values("f16", "q8_0", "q4_1"),
                                            ::testing::Values("adjacent", "halves")),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" + std::get<1>(instance.param);
                         });

}  // namespace
}  // namespace headrace::run
