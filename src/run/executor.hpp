// Executor: runs the steps of a bound Plan on a thread pool. It knows addresses and sizes, and nothing of sessions.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_pool.hpp"
#include "compile/plan.hpp"
#include "run/trace.hpp"

namespace headrace::run {

class Executor {
 public:
  /// `plan` and `catalog` must outlive the executor. `weights`: packed, as Plan::weights. Throws ResourceError.
  Executor(const compile::Plan& plan, const compile::KernelCatalog& catalog, std::span<std::byte* const> weights,
           ThreadPool& threads);

  /// Bytes that the arena and the scratch of all workers take.
  [[nodiscard]] std::int64_t buffer_bytes() const noexcept;

  /// The sizes of the next runs, each at most what the Plan was made for. Throws InputError if one exceeds it.
  void set_sizes(const ir::Bindings& sizes);
  /// Where the entry's tensor parameter of this name is written to. Throws InternalError if there is none.
  [[nodiscard]] std::byte* input(std::string_view name) const;
  /// The entry's tensor result, after run(). Encoded results are not read.
  [[nodiscard]] const compile::View& output(std::size_t index) const { return outputs_.at(index); }
  /// The page tables of the next runs, one a sequence, and the positions that each has pages for and that may be read
  /// after the run has written its own; both must stay while they run.
  void set_pages(std::byte* const* const* pages, const std::int64_t* lengths, std::int64_t sequences);

  /// Runs all steps. Throws InputError if an index in an input was out of bounds.
  void run(Trace* trace);

 private:
  /// All that a step needs but its views, in one cache line.
  struct alignas(64) Step {
    void (*run)(const compile::KernelCall&) noexcept = nullptr;
    int (*call_phases)(const compile::KernelCall&) noexcept = nullptr;
    const void* data = nullptr;
    const compile::View* views = nullptr;  ///< operands, then results
    std::uint32_t operands = 0;
    std::uint32_t results = 0;
    int phases = 1;
    bool barrier_before = true;
    const std::string* name = nullptr;
  };
  /// A size that changes with the symbols: views_[view].dims[axis].
  struct Patch {
    std::size_t view = 0;
    std::size_t axis = 0;
  };

  compile::View make_view(const compile::BoundOperand& operand, std::span<std::byte* const> weights);
  void add_patches(std::size_t view, const ir::Type& type);
  void fetch(std::size_t step) const noexcept;
  void run_worker(int worker, int workers, bool* failed, Trace* trace);

  const compile::Plan& plan_;
  ThreadPool& threads_;
  compile::BoundPlan bound_;
  Buffer arena_;
  Buffer scratch_;
  std::size_t scratch_stride_ = 0;
  Buffer shared_;
  std::vector<Step> steps_;
  std::vector<compile::View> views_;
  std::vector<compile::View> outputs_;
  std::vector<std::size_t> state_views_;
  compile::StateView pages_;                 ///< what they hold, but for their offsets
  std::vector<ir::Dim> dims_;                ///< that are no constants, each once
  std::vector<std::int64_t> dim_values_;     ///< of dims_, at the sizes of the next run
  std::vector<std::vector<Patch>> patches_;  ///< of dims_
  ir::Bindings sizes_;
  std::vector<char> failed_;  ///< a flag a worker
};

}  // namespace headrace::run
