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
  /// Times are counted from here. `workers`: lanes.
  explicit Trace(int workers);

  using Clock = std::chrono::steady_clock;
  /// Records an event of one worker; each worker calls for its own lane only. `name` must outlive the trace.
  void add(int worker, std::string_view name, Clock::time_point begin, Clock::time_point end);
  /// Writes `path`: beside, synced, renamed. Throws ResourceError.
  void write(const std::string& path) const;
  [[nodiscard]] std::size_t events() const noexcept;

 private:
  struct Event {
    std::string_view name;
    std::int64_t begin_ns = 0;
    std::int64_t end_ns = 0;
  };
  Clock::time_point start_;
  std::vector<std::vector<Event>> lanes_;
};

}  // namespace headrace::run
