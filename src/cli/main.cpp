// headrace: the program.
#include <string>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "cli/command_line.hpp"

namespace {

/// A standard stream that was closed must not become a model file's descriptor. What takes its place can be neither
/// read (stdin) nor written (stdout, stderr).
void occupy_standard_streams() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // The lowest free descriptor is this one.
    if (::open("/dev/null", descriptor == 0 ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_standard_streams();
  // A reader that went away, and a file that may grow no more, are seen where we write.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  headrace::cli::Console console;
  return headrace::cli::run_command_line(arguments, headrace::cli::read_environment(), console);
}
