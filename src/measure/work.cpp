#include "measure/work.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "formats/format.hpp"
#include "ir/op.hpp"

namespace headrace::measure {

namespace {

bool reads_rows_only(const ir::Node& node) {
  return !node.is_call() && (node.op->name == "embedding" || node.op->name == "gather");
}

/// Bytes of a Weight in its file, and of one row of it.
struct FileBytes {
  double whole = 0;
  double row = 0;
};

FileBytes file_bytes(const ir::Type& weight) {
  const formats::Format* format = formats::find_format(weight.encoding);
  require(format != nullptr && !weight.shape.empty(), "a Weight of an entry has a Format and a shape");
  double rows = 1;
  for (std::size_t axis = 0; axis + 1 < weight.shape.size(); ++axis) {
    rows *= static_cast<double>(weight.shape[axis].constant());
  }
  const auto row = static_cast<double>(format->row_bytes(weight.shape.back().constant()));
  return {.whole = rows * row, .row = row};
}

double weight_bytes(const ir::Program& program, const StepSize& step, std::int64_t experts_used) {
  const ir::Function& entry = program.entry();
  std::map<ir::ValueId, bool> whole;  // of each Weight that is read: whether more than rows of it are
  for (const ir::Node& node : entry.body) {
    for (const ir::ValueId operand : node.operands) {
      if (entry.type(operand).is_weight()) whole[operand] = whole[operand] || !reads_rows_only(node);
    }
  }
  double bytes = 0;
  for (const auto& [id, is_whole] : whole) {
    const ir::Type& type = entry.type(id);
    const FileBytes size = file_bytes(type);
    if (!is_whole) {
      bytes += size.row * static_cast<double>(step.rows);
    } else if (type.shape.size() == 3) {
      bytes += size.whole * touched_share(type.shape[0].constant(), experts_used, step.rows);
    } else {
      bytes += size.whole;
    }
  }
  return bytes;
}

}  // namespace

double touched_share(std::int64_t experts, std::int64_t used, std::int64_t rows) {
  require(experts > 0, "a Weight with experts has at least one");
  if (used <= 0 || used >= experts) return 1;
  const double missed = 1 - static_cast<double>(used) / static_cast<double>(experts);
  return 1 - std::pow(missed, static_cast<double>(rows));
}

Work step_work(const ir::Program& program, const compile::Plan& plan, const compile::KernelCatalog& catalog,
               const StepSize& step, std::int64_t experts_used) {
  const auto rows_each = static_cast<double>(step.rows) / static_cast<double>(step.sequences);
  const double last = step.past + rows_each;            // positions when the step is done
  const double seen = step.past + (rows_each + 1) / 2;  // by a row, itself included, in the mean
  const auto longest = static_cast<std::int64_t>(std::ceil(last));
  Work work;
  work.weight_bytes = weight_bytes(program, step, experts_used);
  if (plan.page_positions > 0) {
    work.kv_bytes = last * static_cast<double>(step.sequences) * static_cast<double>(plan.page_bytes) /
                    static_cast<double>(plan.page_positions);
  }
  const ir::Bindings sizes = {{"T", step.rows}, {"S", step.wanted}, {"B", step.sequences}, {"P", longest}};
  const compile::BoundPlan bound = compile::bind(plan, catalog, sizes);
  for (const compile::BoundStep& each : bound.steps) {
    if (each.step->kernel.cost == nullptr) continue;
    const compile::SizedCall call(each, sizes);
    const compile::KernelCost cost = each.step->kernel.cost(call.call);
    // Kernels of attention count every row as if it saw the longest sequence whole.
    const double share = each.step->op.starts_with("attention") ? seen / static_cast<double>(longest) : 1;
    work.int8_ops += share * cost.int8_ops;
    work.f32_flops += share * cost.f32_flops;
  }
  return work;
}

StepLimit step_limit(const Work& work, const Rates& rates) {
  require(rates.read_bytes_per_s > 0 && rates.f32_flops_per_s > 0, "every machine reads and computes in f32");
  const auto seconds = [&](double operations, double rate) {
    return operations / (rate > 0 ? rate : rates.f32_flops_per_s);
  };
  const double memory = work.bytes() / rates.read_bytes_per_s;
  const double int8 = seconds(work.int8_ops, rates.int8_ops_per_s);
  const double bf16 = seconds(work.bf16_flops, rates.bf16_flops_per_s);
  const double f32 = seconds(work.f32_flops, rates.f32_flops_per_s);
  const double compute = int8 + bf16 + f32;
  if (memory >= compute) return {memory, "memory"};
  const double most = std::max({int8, bf16, f32});
  return {compute, most == int8 ? "int8" : most == bf16 ? "bf16" : "f32"};
}

}  // namespace headrace::measure
