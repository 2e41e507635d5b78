// Small random models for tests: a GGUF file in memory, its Program and its Weights, deterministic by seed.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/half.hpp"
#include "formats/byte_source.hpp"
#include "formats/format.hpp"
#include "formats/gguf_builder.hpp"
#include "models/family.hpp"
#include "models/gguf_checkpoint.hpp"
#include "stream/weight_store.hpp"

namespace headrace::testing {

struct TinyShape {
  std::int64_t layers = 2;
  std::int64_t width = 64;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t feed_forward = 96;
  std::int64_t vocabulary = 100;
  std::int64_t experts = 0;  ///< 0: the layers have none
  std::int64_t experts_used = 0;
  /// gpt-oss: experts with biases, sinks, windows; else a llama.
  bool gpt_oss = false;
  std::int64_t window = 20;  ///< of gpt-oss
};

/// A small shape whose rows are whole blocks of the Format.
inline TinyShape tiny_shape(const std::string& format_name) {
  TinyShape shape;
  const std::int64_t block = formats::find_format(format_name)->block_elements;
  if (block > 32) {
    shape.layers = 1;
    shape.width = shape.feed_forward = block;
  }
  return shape;
}

/// Random bytes of a Weight whose numbers have about unit variance times `scale`.
inline std::vector<std::byte> random_weight(const formats::Format& format, std::int64_t elements, double scale,
                                            std::mt19937& random) {
  std::normal_distribution<double> normal(0, scale);
  const std::int64_t blocks = elements / format.block_elements;
  std::vector<std::byte> bytes(static_cast<std::size_t>(blocks * format.block_bytes));
  for (std::int64_t block = 0; block < blocks; ++block) {
    std::byte* out = bytes.data() + block * format.block_bytes;
    const auto put_half = [&](std::int64_t offset, double value) {
      const std::uint16_t half = f32_to_f16(static_cast<float>(value));
      std::memcpy(out + offset, &half, 2);
    };
    if (format.kind == formats::Format::Kind::floating) {
      const auto value = static_cast<float>(normal(random));
      if (format.code_bits == 32) {
        std::memcpy(out, &value, 4);
      } else {
        const std::uint16_t half = format.name == "f16" ? f32_to_f16(value) : f32_to_bf16(value);
        std::memcpy(out, &half, 2);
      }
      continue;
    }
    for (std::int64_t i = 0; i < format.block_bytes; ++i) out[i] = static_cast<std::byte>(random());
    // Codes are uniform; the scale brings them to the wanted deviation, and a minimum centers them.
    int largest = 1;
    for (int code = 0; code < 1 << format.code_bits; ++code) {
      largest = std::max(largest, std::abs(format.level(static_cast<std::uint8_t>(code))));
    }
    const double levels = format.codebook != nullptr ? 2 * largest : std::ldexp(1.0, format.code_bits);
    const double step = scale * std::sqrt(12.0) / levels * (0.5 + std::abs(normal(random)) / scale);
    if (format.scales == formats::Format::Scales::e8m0) {
      out[format.scale_at] = static_cast<std::byte>(128 + std::ilogb(step));
      continue;
    }
    // Factors are uniform too. The minimum is subtracted where it has factors, as GGUF has it.
    const double unit = format.factor_bits == 0 ? 1 : std::ldexp(1.0, 1 - format.factor_bits);
    put_half(format.scale_at, unit * step);
    if (format.has_minimum) {
      put_half(format.minimum_at, (format.factor_bits == 0 ? -1 : unit) * step * (levels - 1) / 2);
    }
  }
  return bytes;
}

/// A model with the matrices in `format`; routers, norms and biases are f32.
class TinyModel {
 public:
  TinyModel(const std::string& format_name, const TinyShape& shape, unsigned seed)
      : format_(*formats::find_format(format_name)), shape_(shape), random_(seed) {
    add_config();
    add("token_embd.weight", {shape.vocabulary, shape.width});
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) add_layer("blk." + std::to_string(layer) + ".");
    add_vector("output_norm.weight", shape.width, 1);
    file_ = builder_.build();
  }

  [[nodiscard]] models::Model model(const models::StepLimits& limits) const {
    const formats::MemorySource source("tiny.gguf", std::as_bytes(std::span(file_)));
    return models::build_model(models::GgufCheckpoint(formats::Gguf::read(source)), limits);
  }

  stream::MemoryStore store;

 private:
  void add_config() {
    const std::string family = shape_.gpt_oss ? "gpt-oss" : "llama";
    builder_.add("general.architecture", family);
    const auto u32 = [&](const char* key, std::int64_t value) {
      builder_.add(family + key, static_cast<std::uint32_t>(value));
    };
    u32(".block_count", shape_.layers);
    u32(".embedding_length", shape_.width);
    u32(".feed_forward_length", shape_.feed_forward);
    u32(".attention.head_count", shape_.heads);
    u32(".attention.head_count_kv", shape_.kv_heads);
    u32(".context_length", 4096);
    builder_.add(family + ".attention.layer_norm_rms_epsilon", 1e-5f);
    if (shape_.experts > 0) {
      u32(".expert_count", shape_.experts);
      u32(".expert_used_count", shape_.experts_used);
    }
    if (shape_.gpt_oss) u32(".attention.sliding_window", shape_.window);
  }

  void add_layer(const std::string& prefix) {
    const std::int64_t width = shape_.width;
    const std::int64_t feed_forward = shape_.feed_forward;
    const std::int64_t kv = width / shape_.heads * shape_.kv_heads;
    add_vector(prefix + "attn_norm.weight", width, 1);
    add_linear(prefix + "attn_q", width, width);
    add_linear(prefix + "attn_k", kv, width);
    add_linear(prefix + "attn_v", kv, width);
    add_linear(prefix + "attn_output", width, width);
    add_vector(prefix + (shape_.gpt_oss ? "post_attention_norm.weight" : "ffn_norm.weight"), width, 1);
    if (shape_.gpt_oss) add_vector(prefix + "attn_sinks.weight", shape_.heads, 1);
    if (shape_.experts == 0) {
      add_linear(prefix + "ffn_gate", feed_forward, width);
      add_linear(prefix + "ffn_up", feed_forward, width);
      add_linear(prefix + "ffn_down", width, feed_forward);
      return;
    }
    const formats::Format& plain = *formats::find_format("f32");
    add(prefix + "ffn_gate_inp.weight", {shape_.experts, width}, &plain);
    if (shape_.gpt_oss) add_vector(prefix + "ffn_gate_inp.bias", shape_.experts, 0.5);
    const auto add_experts = [&](const std::string& name, std::int64_t outputs, std::int64_t inputs) {
      add(prefix + name + ".weight", {shape_.experts, outputs, inputs});
      if (shape_.gpt_oss) add(prefix + name + ".bias", {shape_.experts, outputs}, &plain);
    };
    add_experts("ffn_gate_exps", feed_forward, width);
    add_experts("ffn_up_exps", feed_forward, width);
    add_experts("ffn_down_exps", width, feed_forward);
  }

  void add_linear(const std::string& name, std::int64_t outputs, std::int64_t inputs) {
    add(name + ".weight", {outputs, inputs});
    if (shape_.gpt_oss) add_vector(name + ".bias", outputs, 0.5);
  }

  /// A matrix, or several.
  void add(const std::string& name, const std::vector<std::int64_t>& shape, const formats::Format* format = nullptr) {
    add_tensor(name, shape, format == nullptr ? format_ : *format, 1.0 / std::sqrt(static_cast<double>(shape.back())));
  }

  void add_vector(const std::string& name, std::int64_t size, double scale) {
    add_tensor(name, {size}, *formats::find_format("f32"), scale);
  }

  void add_tensor(const std::string& name, const std::vector<std::int64_t>& shape, const formats::Format& format,
                  double scale) {
    std::int64_t elements = 1;
    for (const std::int64_t size : shape) elements *= size;
    std::vector<std::byte> bytes = random_weight(format, elements, scale, random_);
    const std::vector<std::uint64_t> dimensions(shape.rbegin(), shape.rend());
    builder_.tensor(name, dimensions, format.gguf_type, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    store.add(name, std::move(bytes));
  }

  const formats::Format& format_;
  TinyShape shape_;
  std::mt19937 random_;
  formats::testing::GgufBuilder builder_;
  std::string file_;
};

}  // namespace headrace::testing
