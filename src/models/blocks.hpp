// The blocks that layers of decoders are made of: attention, SwiGLU, a mixture of experts. Each names its Weights (the
// names are GGUF's) and then builds its part of the layer's function.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "ir/builder.hpp"
#include "models/model_builder.hpp"

namespace headrace::models {

/// The function of one layer while it is built: @NAME(x f32[T, D], angles f32[T, E], sequence, position i32[T],
/// weights ..., keys, values) -> x, keys, values.
class LayerBuilder {
 public:
  LayerBuilder(const std::string& name, const ModelShape& shape, double epsilon, const LayerWeights& weights);

  [[nodiscard]] ir::Builder& builder() noexcept { return builder_; }
  [[nodiscard]] const ModelShape& shape() const noexcept { return shape_; }
  [[nodiscard]] ir::ValueId input() const noexcept { return x_; }

  /// A Weight of the layer by its name in it, "attn_q.weight".
  [[nodiscard]] ir::ValueId weight(const std::string& name) const { return weights_.at(name); }
  [[nodiscard]] bool has(const std::string& name) const { return weights_.contains(name); }
  /// x [T, K] through NAME.weight, plus NAME.bias if the layer has one.
  ir::ValueId linear(ir::ValueId x, const std::string& name);
  /// Of rows, as the last axis of x [T, D] has them.
  ir::ValueId norm(ir::ValueId x, const std::string& name);

  ir::Function finish(ir::ValueId x) { return builder_.finish({x, keys, values}); }

  ir::ValueId angles = -1;
  ir::ValueId sequence = -1;
  ir::ValueId position = -1;
  ir::ValueId keys = -1;
  ir::ValueId values = -1;

 private:
  ir::Builder builder_;
  const ModelShape& shape_;
  double epsilon_;
  ir::ValueId x_ = -1;
  std::map<std::string, ir::ValueId> weights_;
};

/// Grouped causal attention with rotary embeddings, from its norm to its output.
struct AttentionBlock {
  /// Norms of q and k before they are rotated: of each head, or of all heads' numbers together.
  enum class Norm : std::uint8_t { none, heads, width };

  std::string pairing = "halves";  ///< of rope
  Norm norm = Norm::none;
  std::int64_t window = 0;  ///< the last positions that are seen; 0: all
  bool sinks = false;       ///< a logit a head that takes a share of the softmax and gives nothing

  void declare(LayerWeights& weights, const Checkpoint& file, const ModelShape& shape) const;
  ir::ValueId build(LayerBuilder& layer, ir::ValueId x) const;
};

/// down(silu(gate(x)) * up(x)) (Shazeer 2020, arXiv 2002.05202).
struct SwigluBlock {
  void declare(LayerWeights& weights, const Checkpoint& file, const ModelShape& shape) const;
  ir::ValueId build(LayerBuilder& layer, ir::ValueId x) const;
};

/// A router chooses shape.experts_used of shape.experts; their outputs are weighted and summed, largest weight first.
struct ExpertBlock {
  /// The weights: the chosen ones of a softmax over all experts; the same, divided by their sum; or a softmax over the
  /// chosen ones' scores.
  enum class Weights : std::uint8_t { softmax, normalized_softmax, softmax_of_chosen };

  Weights weights = Weights::softmax;
  /// gpt-oss's gate, else silu(gate) * up.
  bool clamped = false;

  void declare(LayerWeights& weights, const Checkpoint& file, const ModelShape& shape) const;
  ir::ValueId build(LayerBuilder& layer, ir::ValueId x) const;
};

}  // namespace headrace::models
