#include "ir/program.hpp"

#include "base/error.hpp"

namespace headrace::ir {

const Function* Program::find(std::string_view function_name) const noexcept {
  for (const Function& function : functions) {
    if (function.name == function_name) return &function;
  }
  return nullptr;
}

const Function& Program::entry() const {
  require(!functions.empty(), "a Program has an entry function");
  return functions.back();
}

}  // namespace headrace::ir
