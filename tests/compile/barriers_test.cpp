// Where a bound Plan waits, and what its values may share, for kernels that divide their work as the test says.
#include "compile/barriers.hpp"

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "ir/op.hpp"
#include "ir/text.hpp"

namespace headrace::compile {
namespace {

/// A kernel for every op. Those named divide all their views by columns in units of the given number.
class DividingCatalog final : public KernelCatalog {
 public:
  explicit DividingCatalog(std::map<std::string, std::int64_t> units, bool shared = false)
      : units_(std::move(units)), shared_(shared) {}
  [[nodiscard]] std::string_view isa() const override { return "fake"; }
  [[nodiscard]] std::optional<Kernel> find(const ir::OpDef& op, std::span<const ir::Type> operands,
                                           const ir::Attributes&) const override {
    Kernel kernel;
    kernel.name = op.name;
    const auto place = units_.find(op.name);
    if (place != units_.end()) kernel.column_units.assign(operands.size() + 1, place->second);
    if (shared_) kernel.shared_bytes = [](const KernelCall&) { return std::size_t{64}; };
    return kernel;
  }
  [[nodiscard]] Kernel copy() const override { return {}; }
  [[nodiscard]] std::string linear_encoding(std::string_view) const override { return ""; }
  [[nodiscard]] std::int64_t row_bytes(std::string_view, std::int64_t elements) const override { return 3 * elements; }
  [[nodiscard]] std::int64_t packed_bytes(const ir::Type&) const override { return 64; }
  [[nodiscard]] std::int64_t page_positions() const override { return 64; }
  [[nodiscard]] std::int64_t page_bytes(const ir::Type&) const override { return 64; }

 private:
  std::map<std::string, std::int64_t> units_;
  bool shared_;
};

struct Outcome {
  std::string waits;  ///< a letter a step: '|' behind a barrier, '.' not
  std::int64_t arena_bytes = 0;
};

Outcome outcome(const std::string& functions, const KernelCatalog& catalog) {
  const ir::Program program = ir::parse_program("program p {\n  symbol T in [1, 8]\n" + functions + "}\n");
  Limits limits;
  limits.sizes = {{"T", 8}};
  const Plan plan = compile::plan(program, catalog, limits, {});
  const BoundPlan bound = compile::bind(plan, catalog, limits.sizes);
  Outcome result;
  for (const BoundStep& step : bound.steps) result.waits += step.barrier_before ? '|' : '.';
  result.arena_bytes = bound.arena_bytes;
  return result;
}

const std::string chain =
    "  function @main(%x: f32[T, 64]) {\n"
    "    %a = negate(%x) : f32[T, 64]\n"
    "    %b = exp(%a) : f32[T, 64]\n"
    "    %c = add(%b, %a) : f32[T, 64]\n"
    "    return %c\n"
    "  }\n";

TEST(Barriers, LieBetweenWhatDependsAndIsDividedOtherwise) {
  const std::map<std::string, std::int64_t> all = {{"negate", 32}, {"exp", 32}, {"add", 32}};
  EXPECT_EQ(outcome(chain, DividingCatalog({})).waits, ".||");
  EXPECT_EQ(outcome(chain, DividingCatalog(all)).waits, "...");
  EXPECT_EQ(outcome(chain, DividingCatalog({{"negate", 32}, {"exp", 64}, {"add", 32}})).waits, ".||")
      << "other units are other columns";
  EXPECT_EQ(outcome(chain, DividingCatalog({{"negate", 32}, {"exp", 32}})).waits, "..|");
  EXPECT_EQ(outcome(chain, DividingCatalog(all, true)).waits, ".||") << "scratch of all is touched by all";
}

TEST(Barriers, IndependentStepsDoNotWait) {
  const std::string independent =
      "  function @main(%x: f32[T, 64]) {\n"
      "    %a = negate(%x) : f32[T, 64]\n"
      "    %b = exp(%x) : f32[T, 64]\n"
      "    return %a, %b\n"
      "  }\n";
  EXPECT_EQ(outcome(independent, DividingCatalog({})).waits, "..");
}

TEST(Barriers, ReshapesKeepColumnsWhereRowsStay) {
  const auto reshaped = [](const std::string& shape) {
    return "  function @main(%x: f32[T, 64]) {\n    %a = negate(%x) : f32[T, 64]\n    %b = reshape(%a) {shape = \"" +
           shape + "\"} : f32[" + shape + "]\n    %c = exp(%b) : f32[" + shape + "]\n    return %c\n  }\n";
  };
  const DividingCatalog catalog({{"negate", 32}, {"exp", 32}});
  EXPECT_EQ(outcome(reshaped("T, 4, 16"), catalog).waits, "..");
  EXPECT_EQ(outcome(reshaped("2 * T, 32"), catalog).waits, ".|");
}

TEST(Barriers, ValuesThatNoBarrierPartsShareNothing) {
  // In %f's place lay %a, when steps were the measure: read by workers that are still at %c.
  const std::string functions =
      "  function @main(%x: f32[T, 64], %y: f32[T, 64]) {\n"
      "    %a = negate(%x) : f32[T, 64]\n"
      "    %b = exp(%a) : f32[T, 64]\n"
      "    %c = cos(%b) : f32[T, 64]\n"
      "    %d = negate(%c) : f32[T, 64]\n"
      "    %e = cos(%d) : f32[T, 64]\n"
      "    return %e\n"
      "  }\n";
  const std::map<std::string, std::int64_t> units = {{"negate", 32}, {"exp", 32}};
  const Outcome divided = outcome(functions, DividingCatalog(units));
  EXPECT_EQ(divided.waits, "..|||");
  const Outcome undivided = outcome(functions, DividingCatalog({}));
  EXPECT_EQ(undivided.waits, ".||||");
  EXPECT_EQ(undivided.arena_bytes, 3 * 8 * 64 * 4) << "%y, and two that alternate";
  EXPECT_EQ(divided.arena_bytes, 4 * 8 * 64 * 4);
}

TEST(Barriers, LieAtTheBoundariesOfCallsWhereDataWants) {
  const std::string calls =
      "  function @layer(%x: f32[T, 64]) {\n"
      "    %a = negate(%x) : f32[T, 64]\n"
      "    %b = cos(%a) : f32[T, 64]\n"
      "    %c = add(%x, %b) : f32[T, 64]\n"
      "    return %c\n"
      "  }\n"
      "  function @main(%x: f32[T, 64]) {\n"
      "    %p = call @layer(%x) : f32[T, 64]\n"
      "    %q = call @layer(%p) : f32[T, 64]\n"
      "    %r = call @layer(%q) : f32[T, 64]\n"
      "    return %r\n"
      "  }\n";
  EXPECT_EQ(outcome(calls, DividingCatalog({})).waits, ".||||||||");
  EXPECT_EQ(outcome(calls, DividingCatalog({{"negate", 32}, {"add", 32}})).waits, ".||.||.||");
}

}  // namespace
}  // namespace headrace::compile
