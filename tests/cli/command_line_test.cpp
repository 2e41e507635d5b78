// From arguments to exit statuses and messages, without a model.
#include "cli/command_line.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headrace::cli {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

struct Outcome {
  int status;
  std::string out;
  std::string err;
};

Outcome run(const std::vector<std::string>& arguments) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  Console console;
  const int status = run_command_line(arguments, Environment{}, console);
  return {status, testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
}

void expect_usage_error(const std::vector<std::string>& arguments, const std::string& message) {
  const Outcome outcome = run(arguments);
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_THAT(outcome.err, StartsWith("headrace: "));
  EXPECT_THAT(outcome.err, HasSubstr(message));
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
}

TEST(CommandLine, TellsItsVersionAndHelp) {
  EXPECT_EQ(run({"--version"}).out, "headrace " + std::string(version()) + "\n");
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"}, {"-h"}, {"help"}}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(outcome.err, "");
    for (const Verb& verb : verb_table()) EXPECT_THAT(outcome.out, HasSubstr("  " + verb.name + " "));
  }
}

TEST(CommandLine, EachVerbHasHelpWithAnExample) {
  for (const Verb& verb : verb_table()) {
    const Outcome outcome = run({verb.name, "--help"});
    EXPECT_EQ(outcome.status, 0);
    EXPECT_THAT(outcome.out, HasSubstr("headrace " + verb.name));
    EXPECT_THAT(outcome.out, HasSubstr("Examples:\n"));
    EXPECT_THAT(outcome.out, HasSubstr(verb.example));
    EXPECT_EQ(run({"help", verb.name}).out, outcome.out);
  }
}

TEST(CommandLine, SuggestsTheNearest) {
  expect_usage_error({"rnu", "m"}, "unknown verb 'rnu'; did you mean run?");
  expect_usage_error({"help", "tokenise"}, "did you mean tokenize?");
  expect_usage_error({"serve"}, "unknown verb 'serve'; see headrace --help");
  expect_usage_error({"--verison"}, "unknown option '--verison'; did you mean --version?");
  expect_usage_error({"run", "m", "--tmep", "1"}, "unknown option '--tmep'; did you mean --temp?");
  expect_usage_error({"run", "--tmep=1"}, "unknown option '--tmep'; did you mean --temp?");
  expect_usage_error({"run", "m", "--frobnicate"}, "unknown option '--frobnicate'; see headrace run --help");
}

TEST(CommandLine, RefusesWhatIsMissingOrTooMuch) {
  expect_usage_error({}, "expected a verb");
  expect_usage_error({"run"}, "MODEL is required");
  expect_usage_error({"run", "m", "extra", "-p", "x"}, "unexpected argument 'extra'");
  expect_usage_error({"run", "m", "-p"}, "--prompt");
  expect_usage_error({"run", "m", "-p", "x", "-f", "y"}, "--prompt");
  expect_usage_error({"run", "m", "-p", "x", "--temp", "hot\nline"}, "--temp: expected a number");
  expect_usage_error({"perplexity", "m", "f", "--class", "x"}, "--class");
}

TEST(CommandLine, NamesTheModelThatIsNotThere) {
  const Outcome named = run({"info", "smollm2"});
  EXPECT_EQ(named.status, 3);
  EXPECT_THAT(named.err, HasSubstr("the cache folder is unknown"));
  const Outcome other = run({"info", "smallm2"});
  EXPECT_EQ(other.status, 3);
  EXPECT_THAT(other.err, HasSubstr("'smallm2': expected a model file or a name (smollm2)"));
  const Outcome path = run({"info", "/nowhere/x.gguf"});
  EXPECT_EQ(path.status, 3);
  EXPECT_EQ(path.err, "headrace: /nowhere/x.gguf: no such file\n");
}

}  // namespace
}  // namespace headrace::cli
