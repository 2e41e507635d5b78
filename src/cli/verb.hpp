// Verb: one command of `headrace`. One file in cli/verbs/ a verb; a generated table lists them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "cli/console.hpp"
#include "cli/environment.hpp"

namespace CLI {
class App;
}

namespace headrace::cli {

/// What a verb gets beside its own options.
struct Invocation {
  const Environment& environment;
  Console& console;
  bool verbose = false;
};

/// The exit status of a verb that Ctrl-C ended: 128 + SIGINT, as shells count.
inline constexpr int interrupted_status = 130;

struct Verb {
  std::string name;
  std::string summary;  ///< one line
  std::string details;  ///< what --help says beyond the options; may be empty
  std::string example;  ///< lines of a shell
  /// Declares the verb's options on `app`, and returns what to do once they are parsed: it gives the exit status (0, or
  /// interrupted_status) and throws Errors.
  std::function<int(Invocation&)> (*declare)(CLI::App& app) = nullptr;
};

/// Of Headrace: "0.1.0".
std::string_view version() noexcept;

/// All verbs, generated from the files in cli/verbs/: each defines `Verb verb_NAME()`.
std::span<const Verb> verb_table();

}  // namespace headrace::cli
