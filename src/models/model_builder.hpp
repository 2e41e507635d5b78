// What the families share: reading a config with bounds, and declaring Weights whose shapes are checked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/builder.hpp"
#include "models/checkpoint.hpp"
#include "models/family.hpp"

namespace headrace::models {

/// A configuration with bounds on its values; keys are those of Checkpoint.
class ConfigReader {
 public:
  explicit ConfigReader(const Checkpoint& file) : file_(file) {}

  /// A size in [1, 2^24]. Throws InputError.
  [[nodiscard]] std::int64_t size(std::string_view name) const;
  [[nodiscard]] std::int64_t size(std::string_view name, std::int64_t fallback) const;
  /// A finite number > 0.
  [[nodiscard]] double positive(std::string_view name) const;
  [[nodiscard]] double positive(std::string_view name, double fallback) const;
  /// Throws InputError "FILE: KEY: expected …, found …".
  [[noreturn]] void refuse(std::string_view name, const std::string& expected, const std::string& found) const;

 private:
  const Checkpoint& file_;
};

/// Declares the Weights of a layer function (of any Format) and of the entry (of the file's) alike: a list of the
/// layer's tensors in order, of which each call binds its own.
class LayerWeights {
 public:
  struct Tensor {
    std::string name;                      ///< within a layer, "attn_q.weight"
    std::vector<std::int64_t> shape;       ///< in the Program: [N], [N, K] or [X, N, K]
    std::vector<std::int64_t> file_shape;  ///< the same numbers in the file
  };

  void add(std::string name, const std::vector<std::int64_t>& shape) {
    tensors_.push_back({std::move(name), shape, shape});
  }
  /// A tensor [..., N] of the file, as [..., N, 1].
  void add_column(std::string name, const std::vector<std::int64_t>& file_shape) {
    std::vector<std::int64_t> shape = file_shape;
    shape.push_back(1);
    tensors_.push_back({std::move(name), std::move(shape), file_shape});
  }
  [[nodiscard]] std::span<const Tensor> tensors() const { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

/// The tensor of this name. Throws InputError if the file lacks it or it is of no Format that Headrace knows.
const CheckpointTensor& find_weight(const Checkpoint& file, std::string_view name);

/// Declares the tensor `name` of the file as a parameter of the entry. Throws InputError if the file lacks it or its
/// shape is another.
ir::ValueId declare_weight(ir::Builder& builder, const Checkpoint& file, const std::string& name,
                           const LayerWeights::Tensor& tensor);

/// Adds the symbols T, S, B, P of a step.
void declare_step_symbols(ir::Program& program, const StepLimits& limits);

}  // namespace headrace::models
