// headrace: the program.
#include <string>
#include <vector>

#include <signal.h>

#include "cli/command_line.hpp"

int main(int argc, char** argv) {
  // A reader that went away is seen where we write.
  ::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  headrace::cli::Console console;
  return headrace::cli::run_command_line(arguments, headrace::cli::read_environment(), console);
}
