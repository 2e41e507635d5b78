// Random well-typed Programs on every path that gives their values: the interpreter, the interpreter of the lowered
// Program, and the cpu target on every instruction set and thread count.
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/half.hpp"
#include "base/thread_pool.hpp"
#include "compile/passes.hpp"
#include "compile/plan.hpp"
#include "formats/format.hpp"
#include "ir/interpreter.hpp"
#include "ir/op.hpp"
#include "ir/random_program.hpp"
#include "ir/text.hpp"
#include "kernels/catalog.hpp"
#include "kernels/paged_state.hpp"
#include "run/executor.hpp"
#include "run/loader.hpp"
#include "stream/weight_store.hpp"

namespace headrace::run {
namespace {

using headrace::testing::PagedStates;
using headrace::testing::RandomProgram;

constexpr unsigned programs = 300;

/// Formats of which rows of 32 and 64 are whole blocks. (Those of blocks of 256 are in contract_test.)
std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const formats::Format& format : formats::format_table()) {
    if (32 % format.block_elements == 0) names.emplace_back(format.name);
  }
  return names;
}

/// Random bytes of a Weight with all numbers in [-1, 1].
std::vector<std::byte> weight_bytes(const ir::Type& type, std::mt19937& random) {
  const formats::Format& format = *formats::find_format(type.encoding);
  std::int64_t elements = 1;
  for (const ir::Dim& dim : type.shape) elements *= dim.constant();
  std::vector<std::byte> bytes(static_cast<std::size_t>(format.row_bytes(elements)));
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (std::int64_t block = 0; block < elements / format.block_elements; ++block) {
    std::byte* out = bytes.data() + block * format.block_bytes;
    const auto put_half = [&](std::int64_t offset, std::uint16_t half) { std::memcpy(out + offset, &half, 2); };
    const float value = uniform(random);
    if (format.kind == formats::Format::Kind::floating) {
      if (format.name == "f32") std::memcpy(out, &value, 4);
      if (format.name == "f16") put_half(0, f32_to_f16(value));
      if (format.name == "bf16") put_half(0, f32_to_bf16(value));
      continue;
    }
    for (std::int64_t i = 0; i < format.block_bytes; ++i) out[i] = static_cast<std::byte>(random());
    if (format.scales == formats::Format::Scales::e8m0) {
      out[format.scale_at] = static_cast<std::byte>(124 - random() % 4);  // 2^-4 at most, times 12
      continue;
    }
    const float step = value / std::ldexp(1.0F, format.codebook != nullptr ? 8 : format.code_bits);
    put_half(format.scale_at, f32_to_f16(step));
    if (format.has_minimum) put_half(format.minimum_at, f32_to_f16(-value / 2));
  }
  return bytes;
}

struct Weights {
  stream::MemoryStore store;
  std::map<std::string, ir::Tensor> decoded;
};

Weights random_weights(const ir::Program& program, unsigned seed) {
  Weights weights;
  std::mt19937 random(seed);
  const ir::Function& entry = program.entry();
  for (const ir::ValueId id : entry.parameters) {
    const ir::Value& value = entry.values[static_cast<std::size_t>(id)];
    if (!value.type.is_weight()) continue;
    std::vector<std::byte> bytes = weight_bytes(value.type, random);
    const formats::Format& format = *formats::find_format(value.type.encoding);
    ir::Tensor& tensor = weights.decoded[value.name];
    for (const ir::Dim& dim : value.type.shape) tensor.shape.push_back(dim.constant());
    std::vector<float> numbers(static_cast<std::size_t>(ir::element_count(tensor.shape)));
    format.decode(bytes.data(), static_cast<std::int64_t>(numbers.size()) / format.block_elements, numbers.data());
    tensor.values.assign(numbers.begin(), numbers.end());
    weights.store.add(value.name, std::move(bytes));
  }
  return weights;
}

/// Numbers of a result: a tensor's, or those of all sequences of a State.
using Numbers = std::vector<double>;

std::vector<ir::RuntimeValue> interpret(const ir::Program& program, const RandomProgram& made, const Weights& weights) {
  ir::Interpreter interpreter(program,
                              [&](const std::string& name, const ir::Type&) { return weights.decoded.at(name); });
  return interpreter.run(made.inputs);
}

std::vector<Numbers> numbers_of(const std::vector<ir::RuntimeValue>& values) {
  std::vector<Numbers> results;
  for (const ir::RuntimeValue& value : values) {
    if (const auto* tensor = std::get_if<0>(&value)) {
      results.push_back((*tensor)->values);
      continue;
    }
    Numbers& all = results.emplace_back();
    for (const auto& sequence : std::get<1>(value)->sequences) all.insert(all.end(), sequence.begin(), sequence.end());
  }
  return results;
}

/// `expected`: the interpreter's results, which say how many rows States have.
std::vector<Numbers> run_on_cpu(const RandomProgram& made, const compile::Plan& plan,
                                const compile::KernelCatalog& catalog, const LoadedWeights& weights,
                                const std::vector<ir::RuntimeValue>& expected, ThreadPool& threads) {
  Executor executor(plan, catalog, weights.weights, threads);
  executor.set_sizes(made.sizes);
  PagedStates states(made.lengths.size(), made.sizes.at("P"), plan.page_positions, plan.page_bytes);
  states.lengths() = made.lengths;
  for (const compile::StatePlan& state : plan.states) {
    states.set(state.type, state.page_offset, *std::get<1>(made.inputs.at(state.name)));
  }
  executor.set_pages(states.pages(), states.lengths().data(), static_cast<std::int64_t>(made.lengths.size()));
  for (const auto& [name, value] : made.inputs) {
    if (std::holds_alternative<std::shared_ptr<const ir::StateValue>>(value)) continue;
    const ir::Tensor& tensor = *std::get<0>(value);
    const std::int64_t bytes = ir::element_bytes(tensor.element);
    std::byte* out = executor.input(name);
    for (const double number : tensor.values) {
      headrace::testing::store_value(tensor.element, number, out);
      out += bytes;
    }
  }
  executor.run(nullptr);
  std::vector<Numbers> results;
  const ir::Function& entry = plan.program.entry();
  std::size_t tensors = 0;
  for (const ir::ValueId id : entry.results) {
    if (entry.type(id).is_state()) continue;
    const compile::View& view = executor.output(tensors++);
    Numbers& numbers = results.emplace_back();
    for (std::int64_t i = 0; i < view.elements(); ++i) {
      numbers.push_back(headrace::testing::load_value(view.element, view.data + i * ir::element_bytes(view.element)));
    }
  }
  for (const compile::StatePlan& state : plan.states) {
    // Behind the rows that the interpreter counts, pages hold anything: so where nothing was appended.
    const ir::StateValue after = states.get(state.type, state.page_offset);
    const ir::StateValue& counted = *std::get<1>(expected.at(results.size()));
    Numbers& numbers = results.emplace_back();
    for (std::size_t b = 0; b < after.sequences.size(); ++b) {
      const auto& values = after.sequences[b];
      const std::int64_t kept = counted.positions(b) * after.row_elements();
      numbers.insert(numbers.end(), values.begin(), values.begin() + kept);
    }
  }
  return results;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

void expect_same(const std::vector<Numbers>& a, const std::vector<Numbers>& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t r = 0; r < a.size(); ++r) {
    ASSERT_EQ(a[r].size(), b[r].size()) << what << ", result " << r;
    for (std::size_t i = 0; i < a[r].size(); ++i) {
      ASSERT_TRUE(same(a[r][i], b[r][i]))
          << what << ", result " << r << " element " << i << ": " << a[r][i] << " and " << b[r][i];
    }
  }
}

TEST(ProgramProperty, RandomProgramsAgreeOnEveryTarget) {
  ThreadPool one(1);
  ThreadPool two(2);
  std::map<std::string, int> kernels_used;
  for (unsigned seed = 0; seed < programs; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomProgram made = headrace::testing::random_program(seed, format_names());
    const std::string text = ir::print(made.program);
    SCOPED_TRACE(text);
    ASSERT_EQ(ir::parse_program(text), made.program);
    const Weights weights = random_weights(made.program, seed);
    const std::vector<Numbers> semantic = numbers_of(interpret(made.program, made, weights));

    std::vector<Numbers> first;
    for (const kernels::Isa isa : kernels::available_isas()) {
      const auto catalog = kernels::make_catalog(isa);
      compile::Limits limits;
      limits.sizes = {{"T", headrace::testing::random_max_rows},
                      {"B", headrace::testing::random_max_sequences},
                      {"P", headrace::testing::random_max_positions}};
      const compile::Plan plan = compile::plan(made.program, *catalog, limits, {});
      ASSERT_EQ(ir::parse_program(ir::print(plan.program)), plan.program);
      const std::vector<ir::RuntimeValue> interpreted = interpret(plan.program, made, weights);
      const std::vector<Numbers> lowered = numbers_of(interpreted);
      const LoadedWeights loaded = load_weights(plan, weights.store, kernels::kernel_table(isa), two, {});
      for (ThreadPool* threads : {&one, &two}) {
        const std::vector<Numbers> result = run_on_cpu(made, plan, *catalog, loaded, interpreted, *threads);
        const std::string what =
            std::string(kernels::isa_name(isa)) + ", " + std::to_string(threads->workers()) + " threads";
        if (first.empty()) first = result;
        ASSERT_NO_FATAL_FAILURE(expect_same(result, first, what));
        ASSERT_EQ(result.size(), lowered.size());
        for (std::size_t r = 0; r < result.size(); ++r) {
          ASSERT_EQ(result[r].size(), lowered[r].size()) << what << ", result " << r;
          for (std::size_t i = 0; i < result[r].size(); ++i) {
            ASSERT_TRUE(std::abs(result[r][i] - lowered[r][i]) <= made.errors[r])
                << what << ", result " << r << " element " << i << ": " << result[r][i] << ", expected "
                << lowered[r][i] << " within " << made.errors[r];
          }
        }
      }
      // Lowering changes no number but where it encodes.
      bool encodes = false;
      for (const ir::Function& function : plan.program.functions) {
        for (const ir::Node& node : function.body) {
          if (node.is_call()) continue;
          const auto joined = node.attributes.find("encode");
          encodes = encodes || node.op->name == "encode" ||
                    (joined != node.attributes.end() && joined->second != ir::Attribute(std::string()));
        }
      }
      if (!encodes) {
        ASSERT_NO_FATAL_FAILURE(expect_same(lowered, semantic, "lowered"));
      }
      for (const compile::PlanTemplate& each : plan.templates) {
        for (const compile::PlanStep& step : each.steps) ++kernels_used[step.kernel.name];
      }
    }
  }
  for (const kernels::Isa isa : kernels::known_isas()) {
    const auto available = kernels::available_isas();
    if (std::find(available.begin(), available.end(), isa) == available.end()) continue;
    const std::string suffix = "." + std::string(kernels::isa_name(isa));
    // Alone, or joined by compile/fuse.
    const auto used = [&](const std::vector<std::string>& ops, const std::string& format) {
      int count = 0;
      for (const auto& [name, times] : kernels_used) {
        const std::size_t dot = name.find('.');
        if (!name.ends_with(suffix) || std::find(ops.begin(), ops.end(), name.substr(0, dot)) == ops.end()) continue;
        const std::string formats = "+" + name.substr(dot + 1, name.size() - suffix.size() - dot - 1) + "+";
        if (format.empty() || formats.find("+" + format + "+") != std::string::npos) count += times;
      }
      return count;
    };
    for (const std::string& format : format_names()) {
      EXPECT_GT(used({"linear", "linears", "norm_linears"}, format), 10) << format;
      EXPECT_GT(used({"expert_linear"}, format), 4) << format;
    }
    EXPECT_GT(kernels_used["attention" + suffix], 20);
    EXPECT_GT(used({"rms_norm", "norm_linears"}, ""), 30);
  }
}

}  // namespace
}  // namespace headrace::run
