// From arguments to an exit status: finds the verb, parses its options, runs it, and says what went wrong.
#pragma once

#include <span>
#include <string>

#include "cli/verb.hpp"

namespace headrace::cli {

/// Runs `headrace ARGUMENTS…` (without the program's name). Never throws. Errors go to stderr as one plain line
/// `headrace: …`; with --verbose, those that they stand on follow, one a line.
int run_command_line(std::span<const std::string> arguments, const Environment& environment, Console& console);

}  // namespace headrace::cli
