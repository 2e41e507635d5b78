#include "run/executor.hpp"

#include <algorithm>
#include <atomic>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace headrace::run {

using compile::BoundOperand;
using compile::View;

namespace {

/// What steps since the last barrier have touched: byte ranges of the arena, and States.
class Touched {
 public:
  void clear() { ranges_.clear(); }
  void add(std::int64_t begin, std::int64_t end, bool written) { ranges_.push_back({begin, end, written}); }
  /// Whether an access of this kind must wait for one before.
  [[nodiscard]] bool conflicts(std::int64_t begin, std::int64_t end, bool written) const {
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const Entry& entry) {
      return (written || entry.written) && begin < entry.end && entry.begin < end;
    });
  }

 private:
  struct Entry {
    std::int64_t begin, end;
    bool written;
  };
  std::vector<Entry> ranges_;
};

}  // namespace

Executor::Executor(const compile::Plan& plan, const compile::KernelCatalog& catalog,
                   std::span<std::byte* const> weights, ThreadPool& threads)
    : plan_(plan), threads_(threads), bound_(compile::bind(plan, catalog, plan.limits.sizes)) {
  arena_ = Buffer(static_cast<std::size_t>(bound_.arena_bytes), "activations");
  scratch_stride_ = align_up<std::size_t>(bound_.scratch_bytes, 4096);
  scratch_ = Buffer(scratch_stride_ * static_cast<std::size_t>(threads.workers()), "scratch of kernels");
  shared_ = Buffer(bound_.shared_bytes, "shared scratch of kernels");
  failed_.assign(static_cast<std::size_t>(threads.workers()), 0);
  std::size_t views = 0;
  for (const compile::BoundStep& step : bound_.steps) views += step.operands.size() + step.results.size();
  views_.reserve(views);
  for (const compile::BoundStep& bound : bound_.steps) {
    Step step;
    step.plan = bound.step;
    step.first_view = views_.size();
    step.operands = bound.operands.size();
    step.results = bound.results.size();
    for (const auto* list : {&bound.operands, &bound.results}) {
      for (const BoundOperand& operand : *list) {
        add_patches(views_.size(), operand.type);
        views_.push_back(make_view(operand, weights));
      }
    }
    steps_.push_back(step);
  }
  for (const BoundOperand& output : bound_.outputs) {
    outputs_.push_back(make_view(output, weights));
  }
  place_barriers();
  sizes_ = plan.limits.sizes;
}

View Executor::make_view(const BoundOperand& operand, std::span<std::byte* const> weights) {
  View view = compile::sized_view(operand.type, plan_.limits.sizes);
  switch (operand.kind) {
    case BoundOperand::Kind::arena:
      view.data = arena_.data() + operand.index;
      break;
    case BoundOperand::Kind::weight:
      view.data = weights[static_cast<std::size_t>(operand.index)];
      break;
    case BoundOperand::Kind::state:
      view.state.offset = plan_.states[static_cast<std::size_t>(operand.index)].page_offset;
      break;
  }
  return view;
}

void Executor::add_patches(std::size_t view, const ir::Type& type) {
  for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
    const ir::Dim& dim = type.shape[axis];
    if (dim.is_constant()) continue;
    auto place = std::find(dims_.begin(), dims_.end(), dim);
    if (place == dims_.end()) place = dims_.insert(dims_.end(), dim);
    patches_.push_back({view, axis, static_cast<std::size_t>(place - dims_.begin())});
  }
}

void Executor::place_barriers() {
  // Steps between two barriers may run in any order and together: none reads or writes what another writes. Shared
  // scratch counts as written by who uses it.
  constexpr std::int64_t shared_scratch = -1;
  Touched touched;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const compile::BoundStep& bound = bound_.steps[i];
    struct Access {
      std::int64_t begin, end;
      bool written;
    };
    std::vector<Access> accesses;
    const auto add = [&](const BoundOperand& operand, const View& view, bool written) {
      if (operand.kind == BoundOperand::Kind::arena) {
        // An encoded row is longer than its elements; twice their f32 size is a bound for every encoding.
        const std::int64_t bytes =
            operand.type.is_encoded() ? view.elements() * 4 : view.elements() * ir::element_bytes(view.element);
        accesses.push_back({operand.index, operand.index + std::max<std::int64_t>(bytes, 1), written});
      } else if (operand.kind == BoundOperand::Kind::state) {
        // Far behind the arena, one byte a State.
        const std::int64_t place = (std::int64_t{1} << 62) + operand.index;
        accesses.push_back({place, place + 1, written});
      }
    };
    for (std::size_t o = 0; o < bound.operands.size(); ++o) {
      add(bound.operands[o], views_[steps_[i].first_view + o], false);
    }
    for (std::size_t r = 0; r < bound.results.size(); ++r) {
      add(bound.results[r], views_[steps_[i].first_view + bound.operands.size() + r], true);
    }
    if (bound.step->kernel.shared_bytes != nullptr) accesses.push_back({shared_scratch, shared_scratch + 1, true});
    steps_[i].barrier_before = std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      return touched.conflicts(access.begin, access.end, access.written);
    });
    // Between the phases of a kernel lies a barrier too; what comes after must still wait for its last phase.
    if (steps_[i].barrier_before || bound.step->kernel.phases > 1) touched.clear();
    for (const Access& access : accesses) touched.add(access.begin, access.end, access.written);
  }
}

std::int64_t Executor::buffer_bytes() const noexcept {
  return static_cast<std::int64_t>(arena_.size() + scratch_.size() + shared_.size());
}

void Executor::set_sizes(const ir::Bindings& sizes) {
  if (sizes == sizes_) return;
  for (const auto& [name, value] : sizes) {
    const auto limit = plan_.limits.sizes.find(name);
    if (limit == plan_.limits.sizes.end() || value < 0 || value > limit->second) {
      fail<InputError>("size {}: expected at most {}, got {}", name,
                       limit == plan_.limits.sizes.end() ? 0 : limit->second, value);
    }
  }
  std::vector<std::int64_t> values;
  for (const ir::Dim& dim : dims_) values.push_back(dim.evaluate(sizes));
  for (const Patch& patch : patches_) views_[patch.view].dims[patch.axis] = values[patch.dim];
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const ir::Shape& shape = bound_.outputs[i].type.shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) outputs_[i].dims[axis] = shape[axis].evaluate(sizes);
  }
  sizes_ = sizes;
}

std::byte* Executor::input(std::string_view name) const {
  for (std::size_t i = 0; i < bound_.inputs.size(); ++i) {
    if (bound_.input_names[i] == name) return arena_.data() + bound_.inputs[i].index;
  }
  fail<InternalError>("executor: no input {}", name);
}

void Executor::set_pages(std::byte* const* const* pages, const std::int64_t* lengths, std::int64_t sequences) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (std::size_t o = 0; o < steps_[i].operands + steps_[i].results; ++o) {
      View& view = views_[steps_[i].first_view + o];
      view.state.pages = pages;
      view.state.lengths = lengths;
      view.state.sequences = sequences;
    }
  }
}

void Executor::run(Trace* trace) {
  std::fill(failed_.begin(), failed_.end(), 0);
  threads_.run([&](int worker, int workers) {
    bool failed = false;
    run_worker(worker, workers, &failed, trace);
    failed_[static_cast<std::size_t>(worker)] = failed ? 1 : 0;
  });
  if (std::any_of(failed_.begin(), failed_.end(), [](char flag) { return flag != 0; })) {
    fail<InputError>("step: an index of an input is out of bounds");
  }
}

void Executor::run_worker(int worker, int workers, bool* failed, Trace* trace) {
  compile::KernelCall call;
  call.worker = worker;
  call.workers = workers;
  call.failed = failed;
  call.scratch = std::span(scratch_.data() + scratch_stride_ * static_cast<std::size_t>(worker), scratch_stride_);
  call.shared = std::span(shared_.data(), shared_.size());
  for (const Step& step : steps_) {
    const compile::Kernel& kernel = step.plan->kernel;
    const std::span<const View> views(views_.data() + step.first_view, step.operands + step.results);
    call.operands = views.first(step.operands);
    call.results = views.subspan(step.operands);
    call.data = kernel.data.get();
    for (call.phase = 0; call.phase < kernel.phases; ++call.phase) {
      if ((call.phase > 0 || step.barrier_before) && workers > 1 && !threads_.barrier().wait()) return;
      if (trace == nullptr) {
        kernel.run(call);
      } else {
        const auto begin = Trace::Clock::now();
        kernel.run(call);
        trace->add(worker, kernel.name, begin, Trace::Clock::now());
      }
    }
  }
}

}  // namespace headrace::run
