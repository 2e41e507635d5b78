#include "models/family.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "ir/verifier.hpp"

namespace headrace::models {

Model build_model(const formats::Gguf& file, const StepLimits& limits) {
  const std::string& architecture = file.string("general.architecture");
  std::string known;
  for (const Family& family : family_table()) {
    if (family.name == architecture) {
      Model model = family.build(file, limits);
      ir::verify(model.program);
      return model;
    }
    known += (known.empty() ? "" : ", ") + family.name;
  }
  fail<InputError>("{}: general.architecture: expected one of {}, found '{}'", file.file_name(), known, architecture);
}

}  // namespace headrace::models
