// Trace: what happened when, as Perfetto's JSON ("Trace Event Format"), one lane a worker and one for steps.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::run {

class Trace {
 public:
  /// Times are counted from here. `workers`: lanes, each with room for this many events; what comes later is counted
  /// and dropped, since recording must not allocate.
  explicit Trace(int workers, std::size_t events_per_worker = std::size_t{1} << 20);

  using Clock = std::chrono::steady_clock;
  /// Records an event of one worker; each worker calls for its own lane only. `name` must outlive the trace.
  void add(int worker, std::string_view name, Clock::time_point begin, Clock::time_point end) noexcept;
  /// Records a step of the Engine of this many new tokens; events of its kernels were added before.
  void add_step(std::int64_t rows, Clock::time_point begin, Clock::time_point end);

  /// What a kind of steps spent, all of them together.
  struct Spent {
    std::int64_t steps = 0;
    double wall_s = 0;
    double kernels_s = 0;  ///< mean of the workers
    /// Of the wall, what no kernel was running in, 0 .. 1; 0 if there was no step.
    [[nodiscard]] double outside_share() const noexcept { return wall_s > 0 ? 1 - kernels_s / wall_s : 0; }
  };
  /// Of the steps of one row (decode) or of the others (prefill, batches). Recording costs about 50 ns a kernel, which
  /// counts as outside.
  [[nodiscard]] Spent spent(bool one_row) const noexcept;

  /// The text of the file. "otherData" tells `spent` of both kinds.
  [[nodiscard]] std::string json() const;
  /// Writes `path`: beside, synced, renamed. Throws ResourceError.
  void write(const std::string& path) const;
  [[nodiscard]] std::size_t events() const noexcept;
  /// Seconds that the events of one worker took together; they do not overlap.
  [[nodiscard]] double busy_s(int worker) const;
  /// Forgets all events and steps, and keeps their memory.
  void clear() noexcept;
  [[nodiscard]] std::size_t dropped() const noexcept;

 private:
  struct Event {
    std::string_view name;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };
  struct Lane {
    std::vector<Event> events;
    std::size_t dropped = 0;
    std::int64_t kernels_ns = 0;  ///< of all events, those dropped too
  };
  struct Step {
    std::int64_t rows = 0;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
    double kernels_ns = 0;  ///< mean of the workers
  };
  [[nodiscard]] std::int64_t since_start(Clock::time_point time) const noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time - start_).count();
  }

  Clock::time_point start_;
  std::vector<Step> steps_;
  std::int64_t kernels_ns_ = 0;  ///< of all lanes, up to the last step
  std::vector<Lane> lanes_;
};

}  // namespace headrace::run
