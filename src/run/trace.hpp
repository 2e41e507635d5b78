// Trace: what happened when, as Perfetto's JSON ("Trace Event Format"), one lane a worker.
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
  /// The text of the file.
  [[nodiscard]] std::string json() const;
  /// Writes `path`: beside, synced, renamed. Throws ResourceError.
  void write(const std::string& path) const;
  [[nodiscard]] std::size_t events() const noexcept;
  /// Seconds that the events of one worker took together; they do not overlap.
  [[nodiscard]] double busy_s(int worker) const;
  /// Forgets all events and keeps their memory.
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
  };
  Clock::time_point start_;
  std::vector<Lane> lanes_;
};

}  // namespace headrace::run
