// The process's environment: the one place that reads it. Everything else gets values.
#pragma once

#include "models/language_model.hpp"

namespace headrace::cli {

struct Environment {
  models::CacheLocation cache;
};

/// Reads HEADRACE_CACHE, XDG_CACHE_HOME and HOME.
Environment read_environment();

}  // namespace headrace::cli
