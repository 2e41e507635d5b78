// The rotary frequencies of a model: theta, and the ways of stretching them over longer contexts that its file names.
#pragma once

#include <cstdint>

#include "ir/builder.hpp"
#include "models/model_builder.hpp"

namespace headrace::models {

struct Rope {
  enum class Scaling : std::uint8_t { none, linear, yarn, llama3 };

  double theta = 10000;
  std::int64_t width = 0;  ///< E: all of a head is rotated
  Scaling scaling = Scaling::none;
  double factor = 1;           ///< how much longer the context has become
  double original_length = 0;  ///< yarn, llama3: the context before
  double beta_fast = 32;       ///< yarn: rotations above which a frequency stays
  double beta_slow = 1;        ///< yarn: rotations below which it is divided by the factor
  bool truncate = true;        ///< yarn: the range between lies at whole pairs
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  double magnitude = 1;  ///< of cosines and sines
};

/// Reads rope.freq_base, rope.dimension_count and rope.scaling.*; `truncate`: yarn's habit in this family. Throws
/// InputError if a part of the head is rotated only, or the scaling is none of these.
Rope read_rope(const Checkpoint& file, std::int64_t head_width, bool truncate);

/// The frequencies as a constant f32[E / 2]. linear: Chen et al. 2023 (arXiv 2306.15595); yarn: Peng et al. 2023 (arXiv
/// 2309.00071); llama3: as transformers' modeling_rope_utils has it.
ir::ValueId rope_frequencies(ir::Builder& builder, const Rope& rope);

}  // namespace headrace::models
