#include "run/executor.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace headrace::run {

using compile::BoundOperand;
using compile::View;

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
    const std::size_t first = views_.size();
    for (const auto* list : {&bound.operands, &bound.results}) {
      for (const BoundOperand& operand : *list) {
        add_patches(views_.size(), operand.type);
        if (operand.kind == BoundOperand::Kind::state) state_views_.push_back(views_.size());
        views_.push_back(make_view(operand, weights));
      }
    }
    const compile::Kernel& kernel = bound.step->kernel;
    steps_.push_back(
        {kernel.run, kernel.call_phases, kernel.data.get(), views_.data() + first,  // never moves: reserved
         static_cast<std::uint32_t>(bound.operands.size()), static_cast<std::uint32_t>(bound.results.size()),
         kernel.phases, bound.barrier_before, &kernel.name});
  }
  for (const BoundOperand& output : bound_.outputs) {
    outputs_.push_back(make_view(output, weights));
  }
  for (const ir::Dim& dim : dims_) dim_values_.push_back(dim.evaluate(plan.limits.sizes));
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
    if (place == dims_.end()) {
      place = dims_.insert(dims_.end(), dim);
      patches_.emplace_back();
    }
    patches_[static_cast<std::size_t>(place - dims_.begin())].push_back({view, axis});
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
  for (std::size_t i = 0; i < dims_.size(); ++i) {
    const std::int64_t value = dims_[i].evaluate(sizes);
    if (value == dim_values_[i]) continue;  // of a decode step all but the length of the past stay
    dim_values_[i] = value;
    for (const Patch& patch : patches_[i]) views_[patch.view].dims[patch.axis] = value;
  }
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
  const compile::StateView state{pages, sequences, 0, lengths, 0};
  if (pages == pages_.pages && lengths == pages_.lengths && sequences == pages_.sequences) return;
  pages_ = state;
  for (const std::size_t index : state_views_) {
    compile::StateView& view = views_[index].state;
    view.pages = pages;
    view.lengths = lengths;
    view.sequences = sequences;
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
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    fetch(i);
    const Step& step = steps_[i];
    if (step.barrier_before && workers > 1 && !threads_.barrier().wait()) return;
    call.operands = {step.views, step.operands};
    call.results = {step.views + step.operands, step.results};
    call.data = step.data;
    call.phase = 0;
    const int phases = step.call_phases == nullptr ? step.phases : step.call_phases(call);
    for (; call.phase < phases; ++call.phase) {
      if (call.phase > 0 && workers > 1 && !threads_.barrier().wait()) return;
      if (trace == nullptr) {
        step.run(call);
      } else {
        const auto begin = Trace::Clock::now();
        step.run(call);
        trace->add(worker, *step.name, begin, Trace::Clock::now());
      }
    }
  }
}

/// The weights that a step reads push what the Executor knows of it out of the caches until the next step: each time it
/// would be waited for line by line, 0.1 us a kernel. So it is fetched a few kernels before it is needed.
void Executor::fetch(std::size_t step) const noexcept {
  constexpr std::size_t ahead = 4;
  constexpr std::size_t line = 64;
  if (step + 2 * ahead < steps_.size()) __builtin_prefetch(&steps_[step + 2 * ahead]);
  if (step + ahead >= steps_.size()) return;
  const Step& next = steps_[step + ahead];
  const auto* begin = static_cast<const char*>(static_cast<const void*>(next.views));
  const std::size_t bytes = (next.operands + next.results) * sizeof(View);
  for (std::size_t at = 0; at < bytes; at += line) __builtin_prefetch(begin + at);
  __builtin_prefetch(next.data);
}

}  // namespace headrace::run
