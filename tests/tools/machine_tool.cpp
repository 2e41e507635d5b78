// Prints, as one JSON object, this machine and its limits as Headrace sees them, for tests/python/test_cgroup.py.
//   machine_tool [threads] [estimate|measure|text]
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "base/context.hpp"
#include "machine/measure.hpp"
#include "machine/report.hpp"

int main(int count, char** arguments) {
  try {
    headrace::ContextOptions options;
    if (count > 1) options.threads = std::atoi(arguments[1]);
    const std::string_view mode = count > 2 ? arguments[2] : "estimate";
    const auto context = headrace::Context::create(options);
    const auto machine = mode == "estimate" ? headrace::machine::estimate(*context, context->threads().workers())
                                            : headrace::machine::measure(*context);
    const auto text = mode == "text"
                          ? headrace::machine::machine_report(machine, context->limits(), context->features())
                          : headrace::machine::machine_report_json(machine, context->limits(), context->features());
    std::fputs(text.c_str(), stdout);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
