// Small random models for tests: a GGUF file in memory, its Program and its Weights, deterministic by seed.
#pragma once

#include <cmath>
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
};

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
    const double levels = std::ldexp(1.0, format.code_bits);
    const double step = scale * std::sqrt(12.0) / levels * (0.5 + std::abs(normal(random)) / scale);
    put_half(0, step);
    if (format.has_minimum) put_half(2, -step * (levels - 1) / 2);
  }
  return bytes;
}

/// A llama with the matrices in `format`.
class TinyModel {
 public:
  TinyModel(const std::string& format_name, const TinyShape& shape, unsigned seed) {
    const formats::Format* format = formats::find_format(format_name);
    const formats::Format* plain = formats::find_format("f32");
    std::mt19937 random(seed);
    formats::testing::GgufBuilder builder;
    builder.add("general.architecture", "llama");
    const auto u32 = [&](const char* key, std::int64_t value) { builder.add(key, static_cast<std::uint32_t>(value)); };
    u32("llama.block_count", shape.layers);
    u32("llama.embedding_length", shape.width);
    u32("llama.feed_forward_length", shape.feed_forward);
    u32("llama.attention.head_count", shape.heads);
    u32("llama.attention.head_count_kv", shape.kv_heads);
    u32("llama.context_length", 4096);
    builder.add("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    const auto add = [&](const std::string& name, std::int64_t outputs, std::int64_t inputs) {
      const bool vector = outputs == 1;
      const formats::Format& used = vector ? *plain : *format;
      std::vector<std::byte> bytes =
          random_weight(used, outputs * inputs, vector ? 1.0 : 1.0 / std::sqrt(static_cast<double>(inputs)), random);
      std::vector<std::uint64_t> dimensions = {static_cast<std::uint64_t>(inputs)};
      if (!vector) dimensions.push_back(static_cast<std::uint64_t>(outputs));
      builder.tensor(name, dimensions, used.gguf_type, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      store.add(name, std::move(bytes));
    };
    const std::int64_t kv = shape.width / shape.heads * shape.kv_heads;
    add("token_embd.weight", shape.vocabulary, shape.width);
    for (std::int64_t layer = 0; layer < shape.layers; ++layer) {
      const std::string prefix = "blk." + std::to_string(layer) + ".";
      add(prefix + "attn_norm.weight", 1, shape.width);
      add(prefix + "attn_q.weight", shape.width, shape.width);
      add(prefix + "attn_k.weight", kv, shape.width);
      add(prefix + "attn_v.weight", kv, shape.width);
      add(prefix + "attn_output.weight", shape.width, shape.width);
      add(prefix + "ffn_norm.weight", 1, shape.width);
      add(prefix + "ffn_gate.weight", shape.feed_forward, shape.width);
      add(prefix + "ffn_up.weight", shape.feed_forward, shape.width);
      add(prefix + "ffn_down.weight", shape.width, shape.feed_forward);
    }
    add("output_norm.weight", 1, shape.width);
    file_ = builder.build();
  }

  [[nodiscard]] models::Model model(const models::StepLimits& limits) const {
    const formats::MemorySource source("tiny.gguf", std::as_bytes(std::span(file_)));
    return models::build_model(models::GgufCheckpoint(formats::Gguf::read(source)), limits);
  }

  stream::MemoryStore store;

 private:
  std::string file_;
};

}  // namespace headrace::testing
