// A program that we start and talk to, line by line, over its standard input and output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace headrace::measure {

class ChildProcess {
 public:
  /// Starts `command` (its first word is the path of the program). Its stderr is dropped unless `keep_stderr`. Throws
  /// ResourceError naming the program if the system refuses.
  ChildProcess(std::vector<std::string> command, bool keep_stderr);
  /// Ends its input, and kills it if it has not left a second later.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Sends `line` and a line feed. Throws ResourceError if the program has left.
  void write_line(std::string_view line);
  /// The next line, without its line feed. Throws ResourceError if the program leaves, says nothing for `timeout_s`
  /// seconds, or says more than a line may hold.
  std::string read_line(double timeout_s);

 private:
  [[noreturn]] void fail_ended();
  /// Waits, kills after a second, and returns the status as waitpid gives it.
  int wait_for_end() noexcept;

  std::vector<std::string> command_;
  int socket_ = -1;
  pid_t process_ = -1;  ///< -1 once it has been waited for
  std::string buffer_;
};

}  // namespace headrace::measure
