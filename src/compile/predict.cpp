// Predicted times of a bound Plan, and the Plan as people read it.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "compile/plan.hpp"

namespace headrace::compile {

namespace {

KernelCost cost_of(const BoundStep& step, const ir::Bindings& sizes) {
  const SizedCall sized(step, sizes);
  if (step.step->kernel.cost != nullptr) return step.step->kernel.cost(sized.call);
  KernelCost cost;
  for (const View& view : sized.call.results) cost.f32_flops += static_cast<double>(view.elements());
  return cost;
}

double seconds_of(const BoundStep& step, const machine::Machine& machine, const ir::Bindings& sizes) {
  const KernelCost cost = cost_of(step, sizes);
  machine::OpCost op;
  op.bytes_read = cost.bytes_read;
  op.int8_ops = cost.int8_ops;
  op.f32_flops = cost.f32_flops;
  return machine::predicted_time(machine, op).seconds();
}

std::string types_text(const std::vector<BoundOperand>& operands) {
  std::string text;
  for (const BoundOperand& operand : operands) text += (text.empty() ? "" : ", ") + operand.type.str();
  return text;
}

}  // namespace

std::vector<double> predict(const BoundPlan& bound, const machine::Machine& machine, const ir::Bindings& sizes) {
  std::vector<double> seconds;
  for (const BoundStep& step : bound.steps) seconds.push_back(seconds_of(step, machine, sizes));
  return seconds;
}

std::string print_plan(const Plan& plan, const KernelCatalog& catalog, const machine::Machine& machine,
                       const ir::Bindings& sizes) {
  std::string out = fmt::format("plan {} for {}, at", plan.program.name, plan.isa);
  for (const auto& [name, value] : sizes) out += fmt::format(" {} = {}", name, value);
  out += "\n";
  const BoundPlan bound = compile::bind(plan, catalog, sizes);
  // Steps of one template are alike; each line stands for all calls of that step.
  struct Line {
    const BoundStep* step = nullptr;
    int calls = 0;
    double seconds = 0;
  };
  std::vector<Line> lines;
  std::map<const PlanStep*, std::size_t> places;
  double total = 0;
  for (const BoundStep& step : bound.steps) {
    const auto [place, inserted] = places.try_emplace(step.step, lines.size());
    if (inserted) lines.push_back({&step, 0, 0});
    Line& line = lines[place->second];
    const double seconds = seconds_of(step, machine, sizes);
    ++line.calls;
    line.seconds += seconds;
    total += seconds;
  }
  for (const PlanTemplate& each : plan.templates) {
    out += fmt::format("template @{}\n", each.name);
    for (std::size_t i = 0; i < each.steps.size(); ++i) {
      const PlanStep& step = each.steps[i];
      if (step.callee >= 0) {
        std::size_t calls = 1;
        while (i + 1 < each.steps.size() && each.steps[i + 1].callee == step.callee) {
          ++i;
          ++calls;
        }
        out += fmt::format("  call @{} x {}\n", plan.templates[static_cast<std::size_t>(step.callee)].name, calls);
        continue;
      }
      const auto place = places.find(&step);
      if (place == places.end()) continue;
      const Line& line = lines[place->second];
      out += fmt::format("{} {:<16} {:<28} {:>9.1f} us x {:<4} ({}) -> {}\n", line.step->barrier_before ? '|' : ' ',
                         step.op, step.kernel.name, line.seconds * 1e6 / line.calls, line.calls,
                         types_text(line.step->operands), types_text(line.step->results));
    }
  }
  out += fmt::format("weights {} bytes in {} units, all {}\n", plan.weight_bytes, plan.weights.size(),
                     residence_name(Residence::pinned));
  out += fmt::format("KV {} bytes in {} pages of {} positions\n", plan.state_bytes, plan.limits.pages,
                     plan.page_positions);
  out += fmt::format("arena {} bytes\n", bound.arena_bytes);
  const auto barriers =
      std::count_if(bound.steps.begin(), bound.steps.end(), [](const BoundStep& step) { return step.barrier_before; });
  out += fmt::format("{} steps, {} behind a barrier (|)\n", bound.steps.size(), barriers);
  out += fmt::format("predicted {:.3f} ms a step\n", total * 1e3);
  return out;
}

}  // namespace headrace::compile
