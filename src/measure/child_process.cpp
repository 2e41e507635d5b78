#include "measure/child_process.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX has the program declare it

namespace headrace::measure {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t longest_line = 65536;

/// What posix_spawn is told, freed in any case.
struct SpawnPlan {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> command, bool keep_stderr) : command_(std::move(command)) {
  require(!command_.empty(), "a child process has a program");
  // A socket and no pipe: writing to one whose reader left gives an error without a signal.
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    fail<ResourceError>("{}: no socket to talk through: {}", command_[0], std::strerror(errno));
  }
  SpawnPlan plan;
  posix_spawn_file_actions_adddup2(&plan.actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&plan.actions, ends[1], STDOUT_FILENO);
  if (!keep_stderr) posix_spawn_file_actions_addopen(&plan.actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  // Headrace ignores SIGPIPE; programs do not expect that.
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&plan.attributes, &defaults);
  posix_spawnattr_setflags(&plan.attributes, POSIX_SPAWN_SETSIGDEF);
  std::vector<char*> arguments;
  for (std::string& word : command_) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error =
      posix_spawn(&process_, command_[0].c_str(), &plan.actions, &plan.attributes, arguments.data(), environ);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    process_ = -1;
    fail<ResourceError>("{}: cannot be started: {}", command_[0], std::strerror(error));
  }
  socket_ = ends[0];
}

ChildProcess::~ChildProcess() {
  ::close(socket_);
  if (process_ >= 0) wait_for_end();
}

int ChildProcess::wait_for_end() noexcept {
  const auto deadline = Clock::now() + std::chrono::seconds(1);
  int status = 0;
  while (::waitpid(process_, &status, WNOHANG) == 0) {
    if (Clock::now() >= deadline) {
      ::kill(process_, SIGKILL);
      ::waitpid(process_, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  process_ = -1;
  return status;
}

void ChildProcess::fail_ended() {
  ::shutdown(socket_, SHUT_RDWR);
  const int status = wait_for_end();
  if (WIFSIGNALED(status)) fail<ResourceError>("{}: was ended by signal {}", command_[0], WTERMSIG(status));
  fail<ResourceError>("{}: ended without an answer (exit status {})", command_[0], WEXITSTATUS(status));
}

void ChildProcess::write_line(std::string_view line) {
  require(process_ >= 0, "a child process that has ended is not written to");
  std::string text(line);
  text += '\n';
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_ended();
    sent += static_cast<std::size_t>(count);
  }
}

std::string ChildProcess::read_line(double timeout_s) {
  require(process_ >= 0, "a child process that has ended is not read from");
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_s));
  for (;;) {
    const std::size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    if (buffer_.size() > longest_line) {
      fail<ResourceError>("{}: expected a line of at most {} bytes, got a longer one", command_[0], longest_line);
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd event{.fd = socket_, .events = POLLIN, .revents = 0};
    const int ready = left < 0 ? 0 : ::poll(&event, 1, static_cast<int>(std::min<std::int64_t>(left, 1 << 30)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) fail<ResourceError>("{}: expected an answer within {:.0f} s, got none", command_[0], timeout_s);
    char bytes[4096];
    const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) fail_ended();
    buffer_.append(bytes, static_cast<std::size_t>(count));
  }
}

}  // namespace headrace::measure
