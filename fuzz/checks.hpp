// What the fuzz targets share: a promise that must hold, and calls that may be refused with a message of one line.
#pragma once

#include <cstdlib>
#include <string_view>

#include "base/error.hpp"

namespace headrace::fuzz {

inline void check(bool holds) {
  if (!holds) std::abort();
}

template <class Action>
void allow_input_error(Action&& action) {
  try {
    action();
  } catch (const InputError& error) {
    check(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}

}  // namespace headrace::fuzz
