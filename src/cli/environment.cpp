#include "cli/environment.hpp"

#include <cstdlib>

namespace headrace::cli {

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Environment read_environment() {
  return {.cache = {.headrace_cache = variable("HEADRACE_CACHE"),
                    .xdg_cache_home = variable("XDG_CACHE_HOME"),
                    .home = variable("HOME")}};
}

}  // namespace headrace::cli
