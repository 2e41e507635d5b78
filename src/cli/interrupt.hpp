// Ctrl-C: the first one asks, the second one kills. A thread of its own waits for SIGINT, so that no handler runs in
// the middle of anything and nothing is global.
#pragma once

#include <atomic>
#include <thread>

#include <signal.h>

namespace headrace::cli {

class Interrupt {
 public:
  /// Takes over SIGINT for this thread and all that it starts later; make it before other threads. If SIGINT is ignored
  /// (a job in the background), it stays so. Until catch_first() the program dies of SIGINT as any other.
  /// Throws ResourceError if the system refuses.
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// From now on the first SIGINT sets requested(), and the next one kills. Also after a request was served.
  void catch_first() noexcept;
  /// From now on SIGINT kills.
  void release() noexcept;

  [[nodiscard]] const std::atomic<bool>& requested() const noexcept { return requested_; }
  /// Becomes readable with a request.
  [[nodiscard]] int descriptor() const noexcept { return request_event_; }

 private:
  void watch() noexcept;

  std::atomic<bool> catching_{false};
  std::atomic<bool> requested_{false};
  int signal_descriptor_ = -1;
  int request_event_ = -1;
  int stop_event_ = -1;
  sigset_t previous_mask_{};
  std::thread watcher_;
};

}  // namespace headrace::cli
