#include "cli/interrupt.hpp"

#include <cerrno>
#include <cstring>
#include <system_error>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/error.hpp"

namespace headrace::cli {

namespace {

sigset_t interrupt_set() noexcept {
  sigset_t set{};
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

void signal_event(int descriptor) noexcept {
  const std::uint64_t one = 1;
  // Cannot fail: the counter of an eventfd is far from its limit.
  [[maybe_unused]] const ssize_t count = ::write(descriptor, &one, sizeof one);
}

void die_of_interrupt() noexcept {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  ::sigaction(SIGINT, &action, nullptr);
  const sigset_t set = interrupt_set();
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(SIGINT);
}

}  // namespace

Interrupt::Interrupt() {
  request_event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  stop_event_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (request_event_ < 0 || stop_event_ < 0) {
    fail<ResourceError>("signals cannot be watched: {}", std::strerror(errno));
  }
  struct sigaction current{};
  ::sigaction(SIGINT, nullptr, &current);
  if (current.sa_handler == SIG_IGN) return;
  const sigset_t set = interrupt_set();
  ::pthread_sigmask(SIG_BLOCK, &set, &previous_mask_);
  signal_descriptor_ = ::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signal_descriptor_ < 0) fail<ResourceError>("signals cannot be watched: {}", std::strerror(errno));
  try {
    watcher_ = std::thread([this] { watch(); });
  } catch (const std::system_error& error) {
    fail<ResourceError>("a thread that watches signals cannot be started: {}", error.what());
  }
}

Interrupt::~Interrupt() {
  if (watcher_.joinable()) {
    signal_event(stop_event_);
    watcher_.join();
    ::pthread_sigmask(SIG_SETMASK, &previous_mask_, nullptr);
  }
  for (const int descriptor : {signal_descriptor_, request_event_, stop_event_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

void Interrupt::catch_first() noexcept {
  requested_ = false;
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t drained = ::read(request_event_, &count, sizeof count);
  catching_ = true;
}

void Interrupt::release() noexcept { catching_ = false; }

void Interrupt::watch() noexcept {
  pollfd waits[2] = {{signal_descriptor_, POLLIN, 0}, {stop_event_, POLLIN, 0}};
  for (;;) {
    if (::poll(waits, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (waits[1].revents != 0) return;
    signalfd_siginfo info{};
    if (::read(signal_descriptor_, &info, sizeof info) != sizeof info) continue;
    if (!catching_ || requested_.exchange(true)) die_of_interrupt();
    signal_event(request_event_);
  }
}

}  // namespace headrace::cli
