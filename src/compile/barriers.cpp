#include "compile/barriers.hpp"

#include <algorithm>
#include <vector>

namespace headrace::compile {

namespace {

/// How a step touches bytes of the arena, a State, or the scratch that workers share.
struct Access {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool written = false;
  std::int64_t unit = 0;  ///< of columns, or 0: undivided
  const ir::Type* type = nullptr;
};

// States and the shared scratch get one byte each, far from the arena's.
constexpr std::int64_t shared_scratch = -1;
constexpr std::int64_t states_begin = std::int64_t{1} << 62;

/// Whether rows of both are as many and as long, element by element, whatever the dimensions behind the first.
bool has_equal_rows(const ir::Type& a, const ir::Type& b) {
  if (a.kind != b.kind || a.element != b.element || a.encoding != b.encoding) return false;
  if (a.is_state()) return a.shape == b.shape;
  if (a.shape.empty() || b.shape.empty() || a.shape[0] != b.shape[0]) return false;
  const auto columns = [](const ir::Type& type) -> std::int64_t {
    std::int64_t count = 1;
    for (std::size_t i = 1; i < type.shape.size(); ++i) {
      if (!type.shape[i].is_constant()) return -1;
      count *= type.shape[i].constant();
    }
    return count;
  };
  return columns(a) >= 0 && columns(a) == columns(b);
}

bool conflict(const Access& a, const Access& b) {
  if (!(a.written || b.written) || a.begin >= b.end || b.begin >= a.end) return false;
  const bool same_part = a.unit > 0 && a.unit == b.unit && a.begin == b.begin && has_equal_rows(*a.type, *b.type);
  return !same_part;
}

void add_access(std::vector<Access>& accesses, const BoundOperand& operand, bool written, std::int64_t unit,
                const KernelCatalog& catalog, const ir::Bindings& sizes) {
  Access access{0, 0, written, unit, &operand.type};
  switch (operand.kind) {
    case BoundOperand::Kind::weight:
      return;
    case BoundOperand::Kind::state:
      access.begin = states_begin + operand.index;
      access.end = access.begin + 1;
      break;
    case BoundOperand::Kind::arena:
      access.begin = operand.index;
      access.end = operand.index + std::max<std::int64_t>(value_bytes(operand.type, catalog, sizes), 1);
      break;
  }
  accesses.push_back(access);
}

std::vector<Access> accesses_of(const BoundStep& step, const KernelCatalog& catalog, const ir::Bindings& sizes) {
  const Kernel& kernel = step.step->kernel;
  const auto unit = [&](std::size_t view) {
    return view < kernel.column_units.size() ? kernel.column_units[view] : std::int64_t{0};
  };
  std::vector<Access> accesses;
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    add_access(accesses, step.operands[i], false, unit(i), catalog, sizes);
  }
  for (std::size_t i = 0; i < step.results.size(); ++i) {
    add_access(accesses, step.results[i], true, unit(step.operands.size() + i), catalog, sizes);
  }
  if (kernel.shared_bytes != nullptr) accesses.push_back({shared_scratch, shared_scratch + 1, true, 0, nullptr});
  return accesses;
}

}  // namespace

void place_barriers(BoundPlan& bound, const KernelCatalog& catalog) {
  std::vector<Access> touched;  // since the last barrier
  for (BoundStep& step : bound.steps) {
    const std::vector<Access> accesses = accesses_of(step, catalog, bound.sizes);
    step.barrier_before = std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      return std::any_of(touched.begin(), touched.end(),
                         [&](const Access& before) { return conflict(access, before); });
    });
    if (step.barrier_before) touched.clear();
    touched.insert(touched.end(), accesses.begin(), accesses.end());
  }
}

}  // namespace headrace::compile
