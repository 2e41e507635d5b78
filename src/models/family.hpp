// Family: config + weight names -> Program. One small file in models/families/ a family; a generated table lists them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/program.hpp"
#include "models/checkpoint.hpp"

namespace headrace::models {

/// The largest step that a Program is built for: ranges of its symbols.
struct StepLimits {
  std::int64_t rows = 512;     ///< T: new tokens of all sequences in one step
  std::int64_t wanted = 64;    ///< S: rows whose logits are wanted
  std::int64_t sequences = 1;  ///< B
  std::int64_t context = 0;    ///< P: positions of one sequence; 0 = the model's own
};

/// What people and the runtime ask of a model, beyond its Program. The dimension letters are the design's.
struct ModelShape {
  std::int64_t layers = 0;              ///< L
  std::int64_t width = 0;               ///< D
  std::int64_t heads = 0;               ///< H
  std::int64_t kv_heads = 0;            ///< K
  std::int64_t head_width = 0;          ///< E
  std::int64_t feed_forward_width = 0;  ///< F; of one expert if there are any
  std::int64_t experts = 0;             ///< X; 0: the model is no mixture
  std::int64_t experts_used = 0;        ///< A: by each token
  std::int64_t vocabulary = 0;          ///< V
  std::int64_t context_length = 0;      ///< that the model was trained for
};

/// A language model's step. The entry takes, by name:
///   tokens i32[T], sequence i32[T], position i32[T]   packed rows of all sequences, each sequence's in order
///   rows i32[S]                                       the rows whose logits are wanted
/// then Weights by their names in the file, then State; it returns logits f32[S, V], then the State.
struct Model {
  std::string family;
  ModelShape shape;
  ir::Program program;
};

struct Family {
  std::string name;  ///< as Checkpoint::architecture names it
  /// Throws InputError naming file and key or tensor if the config or a tensor's shape is not the family's.
  Model (*build)(const Checkpoint& file, const StepLimits& limits) = nullptr;
};

/// All families, generated from the files in models/families/: each defines `Family family_NAME()`.
std::span<const Family> family_table();

/// Builds the Program of the model in `file` and verifies it. Throws InputError naming the known families if it is of
/// none of them.
Model build_model(const Checkpoint& file, const StepLimits& limits);

}  // namespace headrace::models
