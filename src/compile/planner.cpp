#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "compile/passes.hpp"
#include "compile/plan.hpp"
#include "ir/op.hpp"

namespace headrace::compile {

using ir::ValueId;

namespace {

constexpr std::int64_t alignment = 64;

/// Turns one function into steps over slots.
class TemplateBuilder {
 public:
  TemplateBuilder(const ir::Program& program, const ir::Function& function, const KernelCatalog& catalog)
      : program_(program), function_(function), catalog_(catalog) {}

  PlanTemplate run() {
    template_.name = function_.name;
    template_.slots.resize(function_.values.size());
    for (std::size_t i = 0; i < function_.values.size(); ++i) template_.slots[i].type = function_.values[i].type;
    for (std::size_t i = 0; i < function_.parameters.size(); ++i) {
      Slot& slot = template_.slots[static_cast<std::size_t>(function_.parameters[i])];
      slot.kind = Slot::Kind::parameter;
      slot.index = static_cast<int>(i);
      template_.parameters.push_back(function_.parameters[i]);
    }
    for (const ir::Node& node : function_.body) node.is_call() ? add_call(node) : add_op(node);
    for (std::size_t i = 0; i < function_.results.size(); ++i) add_result(static_cast<int>(i));
    return std::move(template_);
  }

 private:
  Slot& slot(int index) { return template_.slots[static_cast<std::size_t>(index)]; }

  int root(int index) {
    while (slot(index).kind == Slot::Kind::alias) index = slot(index).index;
    return index;
  }

  void alias(int index, int of) {
    slot(index).kind = Slot::Kind::alias;
    slot(index).index = of;
  }

  void add_op(const ir::Node& node) {
    std::vector<ir::Type> types;
    for (const ValueId id : node.operands) types.push_back(function_.type(id));
    if (is_alias(*node.op, types)) alias(node.results[0], node.operands[0]);
    if (needs_no_kernel(*node.op, types)) return;
    std::optional<Kernel> kernel = catalog_.find(*node.op, types, node.attributes);
    require(kernel.has_value(), "a lowered Program has a kernel for each op");
    PlanStep step;
    step.op = node.op->name;
    step.kernel = std::move(*kernel);
    step.operands.assign(node.operands.begin(), node.operands.end());
    step.results.assign(node.results.begin(), node.results.end());
    template_.steps.push_back(std::move(step));
  }

  void add_call(const ir::Node& node) {
    PlanStep step;
    step.op = "call";
    for (std::size_t i = 0; i < program_.functions.size(); ++i) {
      if (program_.functions[i].name == node.callee) step.callee = static_cast<int>(i);
    }
    step.operands.assign(node.operands.begin(), node.operands.end());
    step.results.assign(node.results.begin(), node.results.end());
    // The states come back last, in the order in which they went in (the verifier's rule).
    std::size_t result = node.results.size();
    for (std::size_t i = node.operands.size(); i-- > 0;) {
      if (function_.type(node.operands[i]).is_state()) alias(node.results[--result], node.operands[i]);
    }
    template_.steps.push_back(std::move(step));
  }

  void add_result(int index) {
    const ValueId id = function_.results[static_cast<std::size_t>(index)];
    const int from = root(id);
    const bool is_entry = &function_ == &program_.functions.back();
    if (is_entry || slot(id).type.is_state()) {
      template_.results.push_back(from);
      return;
    }
    if (slot(from).kind == Slot::Kind::arena) {
      slot(from).kind = Slot::Kind::result;
      slot(from).index = index;
      template_.results.push_back(from);
      return;
    }
    // A parameter, or a value that is a result already, is copied to where the caller wants it.
    const auto added = static_cast<int>(template_.slots.size());
    template_.slots.push_back({Slot::Kind::result, index, slot(id).type});
    PlanStep step;
    step.op = "copy";
    step.kernel = catalog_.copy();
    step.operands = {from};
    step.results = {added};
    template_.steps.push_back(std::move(step));
    template_.results.push_back(added);
  }

  const ir::Program& program_;
  const ir::Function& function_;
  const KernelCatalog& catalog_;
  PlanTemplate template_;
};

std::string mebibytes(std::int64_t bytes) { return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / 1048576.0); }

void check_memory(const Plan& plan) {
  if (plan.limits.memory_bytes == 0) return;
  const std::int64_t needed = plan.weight_bytes + plan.state_bytes + plan.arena_bytes;
  if (static_cast<std::uint64_t>(needed) <= plan.limits.memory_bytes) return;
  const auto available = static_cast<std::int64_t>(plan.limits.memory_bytes);
  const std::int64_t rest = available - plan.weight_bytes - plan.arena_bytes;
  // Of each of the sequences, whose ends take a page more each.
  const auto found = plan.limits.sizes.find("B");
  const std::int64_t sequences = found == plan.limits.sizes.end() ? 1 : found->second;
  const std::int64_t pages = plan.page_bytes == 0 ? 0 : std::max<std::int64_t>(rest / plan.page_bytes - sequences, 0);
  const std::int64_t positions = pages * plan.page_positions / sequences;
  fail<ResourceError>("memory: {} are available, {} are needed: weights {}, KV {} for {} positions, buffers {}; {}",
                      mebibytes(available), mebibytes(needed), mebibytes(plan.weight_bytes),
                      mebibytes(plan.state_bytes), plan.limits.pages * plan.page_positions, mebibytes(plan.arena_bytes),
                      positions > 0 ? fmt::format("a context of {} positions would fit", positions)
                                    : std::string("the weights alone do not fit"));
}

}  // namespace

std::string_view residence_name(Residence residence) {
  switch (residence) {
    case Residence::pinned:
      return "pinned";
    case Residence::streamed:
      return "streamed";
    case Residence::cached:
      return "cached";
  }
  return "";
}

Plan plan(const ir::Program& program, const KernelCatalog& catalog, const Limits& limits, const Profile&) {
  Plan plan;
  plan.program = lower(program, catalog, limits.kv_encoding);
  plan.limits = limits;
  plan.isa = catalog.isa();
  plan.page_positions = catalog.page_positions();
  const ir::Function& entry = plan.program.entry();
  for (const ValueId id : entry.parameters) {
    const ir::Value& value = entry.values[static_cast<std::size_t>(id)];
    if (value.type.is_weight()) {
      plan.weights.push_back({value.name, value.type, catalog.packed_bytes(value.type), Residence::pinned});
      plan.weight_bytes += align_up(plan.weights.back().packed_bytes, alignment);
    } else if (value.type.is_state()) {
      const std::int64_t bytes = align_up(catalog.page_bytes(value.type), alignment);
      plan.states.push_back({value.name, value.type, plan.page_bytes, bytes});
      plan.page_bytes += bytes;
    }
  }
  plan.state_bytes = limits.pages * plan.page_bytes;
  for (const ir::Function& function : plan.program.functions) {
    plan.templates.push_back(TemplateBuilder(plan.program, function, catalog).run());
  }
  const BoundPlan bound = compile::bind(plan, catalog, limits.sizes);
  plan.arena_bytes = bound.arena_bytes + align_up(static_cast<std::int64_t>(bound.shared_bytes), alignment);
  check_memory(plan);
  return plan;
}

}  // namespace headrace::compile
