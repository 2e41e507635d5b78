#include "cli/command_line.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/error.hpp"
#include "base/quote.hpp"
#include "cli/suggest.hpp"

namespace headrace::cli {

namespace {

constexpr std::string_view general_example =
    "  headrace run smollm2 -p 'Why is the sky blue?'\n"
    "  headrace VERB --help\n";

std::string general_help() {
  std::string text = "headrace: runs AI models\n\nUsage: headrace [--verbose] VERB [OPTIONS]\n\nVerbs:\n";
  for (const Verb& verb : verb_table()) text += fmt::format("  {:<12}{}\n", verb.name, verb.summary);
  text +=
      "\nOptions:\n"
      "  -h, --help       this text; of a verb: headrace VERB --help\n"
      "  -v, --verbose    say more on stderr, and all that led to an error\n"
      "  -V, --version    the version\n"
      "\nExamples:\n";
  return text.append(general_example);
}

[[noreturn]] void fail_unknown(std::string_view kind, std::string_view word, std::span<const std::string> known,
                               std::string_view help) {
  const std::optional<std::string> meant = nearest(word, known);
  fail<UsageError>("unknown {} {}; {}", kind, headrace::quoted(word),
                   meant ? fmt::format("did you mean {}?", *meant) : fmt::format("see {}", help));
}

const Verb& find_verb(const std::string& name) {
  std::vector<std::string> names = {"help"};
  for (const Verb& verb : verb_table()) {
    if (verb.name == name) return verb;
    names.push_back(verb.name);
  }
  fail_unknown("verb", name, names, "headrace --help");
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// What no option and no positional takes. An unknown option goes before every other fault: it may be the cause of
/// them.
void refuse_extras(const CLI::App& app, const Verb& verb) {
  const std::vector<std::string> extras = app.remaining();
  const std::string help = fmt::format("headrace {} --help", verb.name);
  for (const std::string& extra : extras) {
    if (extra.size() < 2 || extra[0] != '-' || extra == "--") continue;
    fail_unknown("option", extra.substr(0, extra.find('=')), option_names(app), help);
  }
  for (const std::string& extra : extras) {
    if (extra != "--") fail<UsageError>("unexpected argument {}; see {}", headrace::quoted(extra), help);
  }
}

/// Help as other programs print it: no "REQUIRED", no "Excludes:", a default only where there is one to tell.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(30); }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 || option->get_type_name().empty() ? "" : " " + option->get_type_name();
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string& value = option->get_default_str();
    return option->get_description() + (value.empty() ? "" : " (default " + value + ")");
  }
  std::string make_footer(const CLI::App* app) const override { return app->get_footer() + "\n"; }
};

/// CLI11's message, but "--prompt: 1 required TEXT missing" in plainer words.
std::string plain_message(const CLI::ParseError& error) {
  const std::string message = error.what();
  const std::size_t colon = message.find(": 1 required ");
  return colon == std::string::npos ? message : message.substr(0, colon) + ": expected a value behind it";
}

/// The parsed verb, or nothing if its help was asked for and shown.
std::optional<std::function<int(Invocation&)>> parse_verb(const Verb& verb, std::vector<std::string> arguments,
                                                          bool& verbose, Console& console) {
  CLI::App app(verb.summary + (verb.details.empty() ? "" : "\n\n" + verb.details), "headrace " + verb.name);
  app.allow_extras();
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("-h,--help", "this text");
  app.add_flag("-v,--verbose", verbose, "say more on stderr, and all that led to an error");
  app.footer("Examples:\n" + verb.example);
  std::function<int(Invocation&)> run = verb.declare(app);
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants a vector
  try {
    app.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    console.write(app.help());
    return std::nullopt;
  } catch (const CLI::ParseError& error) {
    refuse_extras(app, verb);
    fail<UsageError>("{}; see headrace {} --help", plain_message(error), verb.name);
  }
  refuse_extras(app, verb);
  return run;
}

int run_verb(std::span<const std::string> arguments, bool& verbose, const Environment& environment, Console& console) {
  const std::vector<std::string> general = {"--help", "--verbose", "--version"};
  std::size_t next = 0;
  for (; next < arguments.size() && arguments[next].starts_with('-'); ++next) {
    const std::string& option = arguments[next];
    if (option == "-h" || option == "--help") {
      console.write(general_help());
      return 0;
    }
    if (option == "-V" || option == "--version") {
      console.write(fmt::format("headrace {}\n", version()));
      return 0;
    }
    if (option != "-v" && option != "--verbose") fail_unknown("option", option, general, "headrace --help");
    verbose = true;
  }
  if (next == arguments.size()) throw UsageError("expected a verb; see headrace --help");
  std::vector<std::string> rest(arguments.begin() + static_cast<std::ptrdiff_t>(next) + 1, arguments.end());
  std::string name = arguments[next];
  if (name == "help") {
    if (rest.empty()) {
      console.write(general_help());
      return 0;
    }
    name = rest[0];
    rest = {"--help"};
  }
  const std::optional<std::function<int(Invocation&)>> run = parse_verb(find_verb(name), rest, verbose, console);
  if (!run) return 0;
  Invocation invocation{environment, console, verbose};
  return (*run)(invocation);
}

/// The errors that `error` was thrown with, outermost first.
void note_causes(const std::exception& error, Console& console) {
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& cause) {
    console.note(fmt::format("headrace:   because: {}", cause.what()));
    note_causes(cause, console);
  } catch (...) {
    console.note("headrace:   because: an unknown error");
  }
}

int report(const std::exception& error, ExitCode code, bool verbose, Console& console) {
  const char* prefix = code == ExitCode::internal ? "headrace: internal error: " : "headrace: ";
  console.note(std::string(prefix) + error.what());
  if (verbose) note_causes(error, console);
  return static_cast<int>(code);
}

}  // namespace

std::string_view version() noexcept { return HEADRACE_VERSION; }

int run_command_line(std::span<const std::string> arguments, const Environment& environment, Console& console) {
  bool verbose = false;
  try {
    return run_verb(arguments, verbose, environment, console);
  } catch (const BrokenPipe&) {
    return 0;
  } catch (const Error& error) {
    return report(error, error.code(), verbose, console);
  } catch (const std::bad_alloc&) {
    return report(ResourceError("out of memory"), ExitCode::resource, verbose, console);
  } catch (const std::exception& error) {
    return report(error, ExitCode::internal, verbose, console);
  } catch (...) {
    return report(InternalError("an unknown error"), ExitCode::internal, verbose, console);
  }
}

}  // namespace headrace::cli
