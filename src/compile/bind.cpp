#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "compile/barriers.hpp"
#include "compile/plan.hpp"

namespace headrace::compile {

namespace {

constexpr std::int64_t alignment = 64;

/// Offsets of one template's arena slots, and the bytes of its frame with those of its deepest call behind them.
struct Frame {
  std::vector<std::int64_t> offsets;
  std::int64_t own_bytes = 0;
  std::int64_t bytes = 0;
};

struct Lifetime {
  std::size_t slot = 0;
  std::int64_t bytes = 0;
  std::size_t first = 0;
  std::size_t last = 0;
};

class Binder {
 public:
  Binder(const Plan& plan, const KernelCatalog& catalog, const ir::Bindings& sizes)
      : plan_(plan), catalog_(catalog), sizes_(sizes) {}

  BoundPlan run() {
    // What may share memory depends on where barriers lie, and where barriers lie on what shares memory. A layout in
    // which nothing shares gives the barriers that the data needs; then what lives between the same two of them is kept
    // apart, so that sharing costs no more.
    lay_out_all();
    for (const PlanTemplate& each : plan_.templates) spans_.push_back(barrier_spans(each));
    lay_out_all();
    measure_scratch();
    return std::move(bound_);
  }

 private:
  /// The barriers of a template that lie before its step i has begun and before it has ended, and all of them.
  struct BarrierSpans {
    std::vector<std::size_t> begin;
    std::vector<std::size_t> end;
    std::size_t count = 0;
  };

  void lay_out_all() {
    frames_.clear();
    bound_ = {};
    for (const PlanTemplate& each : plan_.templates) frames_.push_back(lay_out(each, &each == &plan_.templates.back()));
    bound_.sizes = sizes_;
    const PlanTemplate& entry = plan_.templates.back();
    const ir::Function& function = plan_.program.entry();
    std::vector<BoundOperand> arguments;
    std::int64_t weight = 0;
    std::int64_t state = 0;
    for (const int parameter : entry.parameters) {
      const Slot& slot = entry.slots[static_cast<std::size_t>(parameter)];
      if (slot.type.is_weight()) {
        arguments.push_back({BoundOperand::Kind::weight, weight++, slot.type});
      } else if (slot.type.is_state()) {
        arguments.push_back({BoundOperand::Kind::state, state++, slot.type});
      } else {
        const std::int64_t offset = frames_.back().offsets[static_cast<std::size_t>(parameter)];
        arguments.push_back({BoundOperand::Kind::arena, offset, slot.type});
        bound_.inputs.push_back(arguments.back());
        bound_.input_names.push_back(function.values[static_cast<std::size_t>(parameter)].name);
      }
    }
    flatten(plan_.templates.size() - 1, 0, arguments, {});
    for (std::size_t i = 0; i < entry.results.size(); ++i) {
      const ir::Type& type = function.type(function.results[i]);
      if (type.is_state()) continue;
      BoundOperand output = resolve(entry, entry.results[i], 0, frames_.back(), arguments, {});
      output.type = type;
      bound_.outputs.push_back(std::move(output));
    }
    bound_.arena_bytes = frames_.back().bytes;
    place_barriers(bound_, catalog_);
  }

  /// Where calls of one template differ, the fewest barriers count.
  BarrierSpans barrier_spans(const PlanTemplate& each) const {
    BarrierSpans spans;
    for (const PlanStep& step : each.steps) {
      const bool is_call = step.callee >= 0;
      if (!is_call && std::all_of(bound_.steps.begin(), bound_.steps.end(), [&](const BoundStep& bound) {
            return bound.step != &step || bound.barrier_before;
          })) {
        ++spans.count;
      }
      spans.begin.push_back(spans.count);
      if (is_call) spans.count += spans_[static_cast<std::size_t>(step.callee)].count;
      spans.end.push_back(spans.count);
    }
    return spans;
  }

  static int root(const PlanTemplate& each, int slot) {
    while (each.slots[static_cast<std::size_t>(slot)].kind == Slot::Kind::alias) {
      slot = each.slots[static_cast<std::size_t>(slot)].index;
    }
    return slot;
  }

  Frame lay_out(const PlanTemplate& each, bool is_entry) {
    // Lifetimes count barriers, once those are known; before, all overlap.
    const std::size_t count = each.slots.size();
    const bool known = !spans_.empty();
    const BarrierSpans* spans = known ? &spans_[static_cast<std::size_t>(&each - plan_.templates.data())] : nullptr;
    const std::size_t end = known ? spans->count + 1 : 0;
    std::vector<std::size_t> first(count, end + 1);
    std::vector<std::size_t> last(count, 0);
    const auto touch = [&](int slot, std::size_t from, std::size_t to) {
      const auto index = static_cast<std::size_t>(root(each, slot));
      first[index] = std::min(first[index], from);
      last[index] = std::max(last[index], to);
    };
    for (std::size_t i = 0; i < each.steps.size(); ++i) {
      for (const auto* slots : {&each.steps[i].operands, &each.steps[i].results}) {
        for (const int slot : *slots) touch(slot, known ? spans->begin[i] : 0, known ? spans->end[i] : 0);
      }
    }
    for (const int slot : each.results) touch(slot, end, end);
    std::vector<Lifetime> lifetimes;
    for (std::size_t i = 0; i < count; ++i) {
      const bool input =
          is_entry && each.slots[i].kind == Slot::Kind::parameter && each.slots[i].type.kind == ir::Type::Kind::tensor;
      if (each.slots[i].kind != Slot::Kind::arena && !input) continue;
      // The Engine writes inputs before the first step, and reads them back never.
      lifetimes.push_back({i, align_up(value_bytes(each.slots[i].type, catalog_, sizes_), alignment),
                           input ? 0 : std::min(first[i], end), std::max(last[i], input ? std::size_t{0} : first[i])});
    }
    Frame frame;
    frame.offsets.assign(count, 0);
    place(lifetimes, frame);
    frame.bytes = frame.own_bytes;
    for (const PlanStep& step : each.steps) {
      if (step.callee >= 0) {
        frame.bytes = std::max(frame.bytes, frame.own_bytes + frames_[static_cast<std::size_t>(step.callee)].bytes);
      }
    }
    return frame;
  }

  /// Largest first, each at the lowest offset that is free throughout its life (Pisarchyk and Lee 2020, arXiv
  /// 2001.03288, greedy by size).
  static void place(std::vector<Lifetime> lifetimes, Frame& frame) {
    std::stable_sort(lifetimes.begin(), lifetimes.end(),
                     [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; });
    std::vector<const Lifetime*> placed;  // by offset
    for (const Lifetime& next : lifetimes) {
      std::int64_t offset = 0;
      for (const Lifetime* other : placed) {
        const std::int64_t begin = frame.offsets[other->slot];
        const bool together = next.first <= other->last && other->first <= next.last;
        if (together && offset < begin + other->bytes && begin < offset + next.bytes) offset = begin + other->bytes;
      }
      frame.offsets[next.slot] = offset;
      frame.own_bytes = std::max(frame.own_bytes, offset + next.bytes);
      const auto behind = std::upper_bound(
          placed.begin(), placed.end(), offset,
          [&](std::int64_t value, const Lifetime* other) { return value < frame.offsets[other->slot]; });
      placed.insert(behind, &next);
    }
  }

  static BoundOperand resolve(const PlanTemplate& each, int slot, std::int64_t base, const Frame& frame,
                              const std::vector<BoundOperand>& arguments, const std::vector<BoundOperand>& results) {
    const int from = root(each, slot);
    const Slot& source = each.slots[static_cast<std::size_t>(from)];
    BoundOperand operand;
    switch (source.kind) {
      case Slot::Kind::parameter:
        operand = arguments[static_cast<std::size_t>(source.index)];
        break;
      case Slot::Kind::result:
        operand = results[static_cast<std::size_t>(source.index)];
        break;
      case Slot::Kind::arena:
      case Slot::Kind::alias:
        operand = {BoundOperand::Kind::arena, base + frame.offsets[static_cast<std::size_t>(from)], {}};
        break;
    }
    operand.type = each.slots[static_cast<std::size_t>(slot)].type;
    return operand;
  }

  void flatten(std::size_t index, std::int64_t base, const std::vector<BoundOperand>& arguments,
               const std::vector<BoundOperand>& results) {
    const PlanTemplate& each = plan_.templates[index];
    const Frame& frame = frames_[index];
    for (const PlanStep& step : each.steps) {
      BoundStep bound;
      bound.step = &step;
      for (const int slot : step.operands)
        bound.operands.push_back(resolve(each, slot, base, frame, arguments, results));
      for (const int slot : step.results) bound.results.push_back(resolve(each, slot, base, frame, arguments, results));
      if (step.callee >= 0) {
        flatten(static_cast<std::size_t>(step.callee), base + frame.own_bytes, bound.operands, bound.results);
      } else {
        bound_.steps.push_back(std::move(bound));
      }
    }
  }

  void measure_scratch() {
    for (const BoundStep& step : bound_.steps) {
      const SizedCall sized(step, sizes_);
      const Kernel& kernel = step.step->kernel;
      if (kernel.scratch_bytes != nullptr) {
        bound_.scratch_bytes = std::max(bound_.scratch_bytes, kernel.scratch_bytes(sized.call));
      }
      if (kernel.shared_bytes != nullptr) {
        bound_.shared_bytes = std::max(bound_.shared_bytes, kernel.shared_bytes(sized.call));
      }
    }
  }

  const Plan& plan_;
  const KernelCatalog& catalog_;
  const ir::Bindings& sizes_;
  std::vector<Frame> frames_;
  std::vector<BarrierSpans> spans_;  ///< of each template, once known
  BoundPlan bound_;
};

}  // namespace

SizedCall::SizedCall(const BoundStep& step, const ir::Bindings& sizes) {
  for (const BoundOperand& operand : step.operands) views.push_back(sized_view(operand.type, sizes));
  for (const BoundOperand& result : step.results) views.push_back(sized_view(result.type, sizes));
  call.operands = std::span<const View>(views).first(step.operands.size());
  call.results = std::span<const View>(views).subspan(step.operands.size());
  call.data = step.step->kernel.data.get();
}

BoundPlan bind(const Plan& plan, const KernelCatalog& catalog, const ir::Bindings& sizes) {
  return Binder(plan, catalog, sizes).run();
}

std::int64_t value_bytes(const ir::Type& type, const KernelCatalog& catalog, const ir::Bindings& sizes) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i < type.shape.size(); ++i) {
    const std::int64_t dim = type.shape[i].evaluate(sizes);
    const bool is_row = type.is_encoded() && i + 1 == type.shape.size();
    const auto product = checked_mul(rows, is_row ? catalog.row_bytes(type.encoding, dim) : dim);
    if (!product) fail<InputError>("type {}: expected fewer than 2^63 bytes, got an overflow", type.str());
    rows = *product;
  }
  return type.is_encoded() ? rows : rows * ir::element_bytes(type.element);
}

View sized_view(const ir::Type& type, const ir::Bindings& sizes) {
  View view;
  if (type.shape.size() > max_rank) {
    fail<InputError>("type {}: expected rank {} at most, got {}", type.str(), max_rank, type.shape.size());
  }
  view.rank = static_cast<std::uint8_t>(type.shape.size());
  view.element = type.element;
  for (std::size_t i = 0; i < type.shape.size(); ++i) view.dims[i] = type.shape[i].evaluate(sizes);
  if (type.is_state()) {
    const auto positions = sizes.find("P");
    if (positions != sizes.end()) view.state.longest = positions->second;
  }
  return view;
}

}  // namespace headrace::compile
