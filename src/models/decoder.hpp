// The skeleton of decoders: embedding, pre-norm layers with residuals, a last norm, logits. A family says what its
// layers are made of.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "models/blocks.hpp"
#include "models/family.hpp"
#include "models/rope.hpp"

namespace headrace::models {

/// A kind of layer becomes one function of the Program: x + attention(x), then x + feed_forward(norm(x)).
struct LayerKind {
  AttentionBlock attention;
  std::string feed_forward_norm = "ffn_norm.weight";
  std::variant<SwigluBlock, ExpertBlock> feed_forward = SwigluBlock{};
};

struct Decoder {
  std::string family;
  ModelShape shape;
  double epsilon = 1e-5;
  Rope rope;
  LayerKind layer;
  std::int64_t window = 0;  ///< positions that layers with a window see; 0: there are none
  /// Of each so many layers the last sees everything, the others have the window; 0: all have it.
  std::int64_t window_pattern = 0;
};

/// What files leave out because all models of a family have it.
struct Habits {
  bool truncate = true;             ///< Rope::truncate
  std::int64_t window_pattern = 0;  ///< Decoder::window_pattern
};

/// The sizes, epsilon, rope and window of a decoder from its file, and its experts if it has any. Throws InputError
/// naming file and key.
Decoder read_decoder(const Checkpoint& file, std::string family, const Habits& habits = {});

/// Throws InputError if the file has no experts.
void require_experts(const Checkpoint& file, const Decoder& decoder);

/// Throws InputError naming file and tensor if a shape is another than the config says, or the file has a tensor that
/// is no part of the model: its numbers would be left out.
Model build_decoder(const Checkpoint& file, const StepLimits& limits, const Decoder& decoder);

}  // namespace headrace::models
