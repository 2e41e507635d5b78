// headrace doctor: this machine as Headrace sees it.
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/context.hpp"
#include "cli/options.hpp"
#include "cli/verb.hpp"
#include "kernels/kernels.hpp"
#include "machine/measure.hpp"
#include "machine/report.hpp"

namespace headrace::cli {

namespace {

struct Options {
  int threads = 0;
  bool json = false;
};

std::string isa_names() {
  std::string names;
  for (const kernels::Isa isa : kernels::available_isas()) {
    names += (names.empty() ? "" : ", ") + std::string(kernels::isa_name(isa));
  }
  return names;
}

int examine(const Options& options, Invocation& invocation) {
  ContextOptions context_options;
  context_options.threads = options.threads;
  // The report has the limits' warnings itself.
  context_options.log_level = invocation.verbose ? LogLevel::info : LogLevel::off;
  const std::unique_ptr<Context> context = Context::create(context_options);
  const machine::Machine measured = machine::measure(*context);
  const std::string_view chosen = kernels::isa_name(kernels::available_isas().back());
  if (options.json) {
    auto report =
        nlohmann::ordered_json::parse(machine::machine_report_json(measured, context->limits(), context->features()));
    nlohmann::ordered_json names = nlohmann::ordered_json::array();
    for (const kernels::Isa isa : kernels::available_isas()) names.push_back(kernels::isa_name(isa));
    report["kernels"] = {{"chosen", chosen}, {"available", names}};
    report["usable_memory_bytes"] = context->limits().usable_memory_bytes();
    report["version"] = version();
    invocation.console.write_json(report);
    return 0;
  }
  std::string text = machine::machine_report(measured, context->limits(), context->features());
  text += fmt::format("{:<10}{} (of {})\n", "kernels", chosen, isa_names());
  text += fmt::format("{:<10}{}\n", "version", version());
  invocation.console.write(text);
  return 0;
}

std::function<int(Invocation&)> declare(CLI::App& app) {
  const auto options = std::make_shared<Options>();
  add_number<int>(app, "--threads", options->threads, 0, 1 << 20, "threads to measure with; 0: as many as are usable");
  add_json(app, options->json);
  return [options](Invocation& invocation) { return examine(*options, invocation); };
}

}  // namespace

Verb verb_doctor() {
  return {.name = "doctor",
          .summary = "this machine as Headrace sees it",
          .details =
              "Cores, usable threads and why so many, memory and limits, instruction sets, the kernels chosen,\n"
              "and rates of reading and computing, measured in about half a second.\n"
              "",
          .example = "  headrace doctor\n  headrace doctor --json",
          .declare = declare};
}

}  // namespace headrace::cli
