#include "models/family.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "ir/verifier.hpp"

namespace headrace::models {

Model build_model(const Checkpoint& file, const StepLimits& limits) {
  const std::string architecture = file.architecture();
  std::string known;
  for (const Family& family : family_table()) {
    if (family.name == architecture) {
      Model model = family.build(file, limits);
      ir::verify(model.program);
      return model;
    }
    known += (known.empty() ? "" : ", ") + family.name;
  }
  fail<InputError>("{}: {}: expected one of {}, found '{}'", file.path(), file.architecture_key(), known, architecture);
}

}  // namespace headrace::models
