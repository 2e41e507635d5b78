// Makes the Context from the options and the limits of this process.
#include "base/context.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace headrace {

namespace {

int thread_count(int wanted, int allowed) {
  if (wanted < 0) fail<InputError>("threads: expected 0 (as many as allowed) or more, got {}", wanted);
  return wanted == 0 ? allowed : std::min(wanted, allowed);
}

}  // namespace

std::unique_ptr<Context> Context::create(const ContextOptions& options) {
  return std::unique_ptr<Context>(new Context(options, read_limits(options.limits_source)));
}

Context::Context(const ContextOptions& options, ResourceLimits limits)
    : limits_(std::move(limits)),
      features_(detect_cpu_features()),
      log_(options.log_level, options.log_out),
      memory_(options.memory_limit_bytes != 0 ? options.memory_limit_bytes : limits_.usable_memory_bytes()),
      threads_(thread_count(options.threads, limits_.threads)) {
  for (const std::string& warning : limits_.warnings) log_.warn("{}", warning);
  if (options.threads > threads_.workers()) {
    log_.warn("threads: {} were asked for, but this process may use {} CPU{}: using {}", options.threads,
              limits_.threads, limits_.threads == 1 ? "" : "s", threads_.workers());
  }
}

}  // namespace headrace
