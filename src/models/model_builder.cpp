#include "models/model_builder.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"

namespace headrace::models {

void ConfigReader::refuse(std::string_view name, const std::string& expected, const std::string& found) const {
  fail<InputError>("{}: {}: expected {}, found {}", file_.path(), file_.key_name(name), expected, found);
}

std::int64_t ConfigReader::size(std::string_view name) const {
  const std::optional<std::int64_t> value = file_.integer(name);
  if (!value) refuse(name, "a size", "nothing");
  if (*value < 1 || *value > (1 << 24)) refuse(name, "a size in [1, 2^24]", std::to_string(*value));
  return *value;
}

std::int64_t ConfigReader::size(std::string_view name, std::int64_t fallback) const {
  return file_.integer(name) ? size(name) : fallback;
}

double ConfigReader::positive(std::string_view name) const {
  const std::optional<double> value = file_.number(name);
  if (!value) refuse(name, "a finite number above 0", "nothing");
  if (!(*value > 0) || !std::isfinite(*value)) refuse(name, "a finite number above 0", fmt::format("{}", *value));
  return *value;
}

double ConfigReader::positive(std::string_view name, double fallback) const {
  return file_.number(name) ? positive(name) : fallback;
}

const CheckpointTensor& find_weight(const Checkpoint& file, std::string_view name) {
  const CheckpointTensor* tensor = file.find_tensor(name);
  if (tensor == nullptr) fail<InputError>("{}: tensor {}: expected it, found none of this name", file.path(), name);
  if (tensor->format == nullptr) {
    fail<InputError>("{}: tensor {}: expected a Format that Headrace knows, found {}", file.path(), name,
                     tensor->format_name);
  }
  return *tensor;
}

ir::ValueId declare_weight(ir::Builder& builder, const Checkpoint& file, const std::string& name,
                           const LayerWeights::Tensor& tensor) {
  const CheckpointTensor& found = find_weight(file, name);
  if (found.shape != tensor.file_shape) {
    fail<InputError>("{}: tensor {}: expected shape [{}], found [{}]", file.path(), name,
                     fmt::join(tensor.file_shape, ", "), fmt::join(found.shape, ", "));
  }
  const ir::Shape dims(tensor.shape.begin(), tensor.shape.end());
  return builder.parameter(name, ir::Type::weight(std::string(found.format->name), dims));
}

void declare_step_symbols(ir::Program& program, const StepLimits& limits) {
  program.symbols = {{"T", 1, limits.rows},
                     {"S", 0, limits.wanted},
                     {"B", 1, limits.sequences},
                     {"P", 0, std::max<std::int64_t>(limits.context, 1)}};
}

}  // namespace headrace::models
