// Progress of anything that takes over a second: one line on a terminal, rewritten in place and wiped at the end.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "cli/console.hpp"

namespace headrace::cli {

class Progress {
 public:
  /// `what` as in "reading the weights". Shows nothing unless stderr is a terminal.
  Progress(Console& console, std::string what);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Called from one thread at a time.
  void update(std::uint64_t done, std::uint64_t total) noexcept;
  /// Wipes the line.
  void finish() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  Console& console_;
  std::string what_;
  Clock::time_point next_;  ///< when the line is written again
  bool shown_ = false;
};

}  // namespace headrace::cli
