#include "measure/read_loop.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace headrace::measure {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t line_bytes = 1024;  ///< what the loops read at once
constexpr std::uint64_t timed_bytes = std::uint64_t{256} << 20;

std::uint64_t affordable(const MemoryBudget& budget, std::uint64_t bytes) {
  const std::uint64_t left = budget.limit_bytes() - std::min(budget.limit_bytes(), budget.reserved_bytes());
  return std::max(std::min(bytes, left / 2) / line_bytes, std::uint64_t{1}) * line_bytes;
}

}  // namespace

ReadLoop::ReadLoop(Context& context, std::uint64_t bytes)
    : context_(context),
      loops_(machine::choose_measure_loops(context.features())),
      capacity_bytes_(affordable(context.memory(), bytes)),
      reservation_(context.memory().reserve(capacity_bytes_, "bench: buffer to read")),
      buffer_(static_cast<std::size_t>(capacity_bytes_), "bench: buffer to read") {
  // Untouched pages are all one page of zeros, which the caches would hold.
  context.threads().parallel_for(static_cast<std::int64_t>(capacity_bytes_), [&](std::int64_t begin, std::int64_t end) {
    std::fill(buffer_.data() + begin, buffer_.data() + end, std::byte{1});
  });
}

double ReadLoop::rate(std::uint64_t bytes) {
  ThreadPool& pool = context_.threads();
  const auto lines = static_cast<std::int64_t>(std::min(bytes, capacity_bytes_) / line_bytes);
  require(lines > 0, "a read loop reads at least a kilobyte");
  const std::uint64_t all = static_cast<std::uint64_t>(lines) * line_bytes;
  const std::uint64_t passes = ceil_div(timed_bytes, all);
  double seconds = 0;
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(pool.workers()));
  pool.run([&](int worker, int workers) {
    const Range part = split(lines, worker, workers);
    const std::byte* const data = buffer_.data() + static_cast<std::uint64_t>(part.begin) * line_bytes;
    const auto size = static_cast<std::size_t>(part.size()) * line_bytes;
    std::uint64_t sum = loops_.read(data, size);
    if (workers > 1 && !pool.barrier().wait()) return;
    const auto begin = Clock::now();
    for (std::uint64_t pass = 0; pass < passes; ++pass) sum ^= loops_.read(data, size);
    if (workers > 1 && !pool.barrier().wait()) return;
    if (worker == 0) seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    sums[static_cast<std::size_t>(worker)] = sum;  // the reads have a use
  });
  __asm__ volatile("" : : "r"(sums.data()) : "memory");
  return static_cast<double>(all * passes) / seconds;
}

}  // namespace headrace::measure
