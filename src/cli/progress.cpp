#include "cli/progress.hpp"

#include <cstdio>
#include <utility>

namespace headrace::cli {

namespace {

constexpr auto quiet_time = std::chrono::seconds(1);
constexpr auto interval = std::chrono::milliseconds(100);

}  // namespace

Progress::Progress(Console& console, std::string what)
    : console_(console), what_(std::move(what)), next_(Clock::now() + quiet_time) {}

void Progress::update(std::uint64_t done, std::uint64_t total) noexcept {
  if (!console_.err_is_terminal() || total == 0) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + interval;
  char line[160];
  const double percent = 100.0 * static_cast<double>(done) / static_cast<double>(total);
  const int size = std::snprintf(line, sizeof line, "\r%.100s: %.0f %%\x1b[K", what_.c_str(), percent);
  if (size > 0) console_.write_err(std::string_view(line, static_cast<std::size_t>(size)));
  shown_ = true;
}

void Progress::finish() noexcept {
  if (shown_) console_.write_err("\r\x1b[K");
  shown_ = false;
}

}  // namespace headrace::cli
