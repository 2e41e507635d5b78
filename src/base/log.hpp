// The log: what a user should know while the program works. To stderr, by spdlog; results never go here.
#pragma once

#include <iosfwd>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace headrace {

enum class LogLevel { debug, info, warning, off };

/// Thread-safe. Not for the hot path: it formats and locks.
class Log {
 public:
  /// Writes messages of `level` and above to stderr or, for tests, to `out`, which must outlive the Log.
  explicit Log(LogLevel level = LogLevel::warning, std::ostream* out = nullptr);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  [[nodiscard]] bool enabled(LogLevel level) const noexcept { return level >= level_; }

  template <class... Args>
  void debug(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(LogLevel::debug)) write(LogLevel::debug, fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  void info(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(LogLevel::info)) write(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
  }
  /// A warning is said once: the same text is not written again by this Log.
  template <class... Args>
  void warn(fmt::format_string<Args...> format, Args&&... args) {
    if (enabled(LogLevel::warning)) write_once(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  class Sink;
  void write(LogLevel level, std::string_view message);
  void write_once(std::string message);

  LogLevel level_;
  std::unique_ptr<Sink> sink_;
  std::mutex mutex_;
  std::set<std::string> said_;  // of warnings; bounded, see log.cpp
};

}  // namespace headrace
