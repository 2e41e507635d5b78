// Loads the Weights of a Plan: reads each in parallel and packs it panel by panel into its Layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/memory.hpp"
#include "base/thread_pool.hpp"
#include "compile/plan.hpp"
#include "kernels/kernels.hpp"
#include "stream/weight_store.hpp"

namespace headrace::run {

/// Packed Weights of a Plan, in one buffer.
struct LoadedWeights {
  Buffer memory;
  std::vector<std::byte*> weights;  ///< as Plan::weights
};

/// Packs with `kernels`. Staging is at most 8 MB a thread. Throws InputError if the store's bytes of a Weight are not
/// those of its type, and what the store throws. `progress` may be empty; it is called from the calling thread.
LoadedWeights load_weights(const compile::Plan& plan, const stream::WeightStore& store,
                           const kernels::KernelTable& kernels, ThreadPool& threads,
                           const std::function<void(std::uint64_t done, std::uint64_t total)>& progress);

}  // namespace headrace::run
