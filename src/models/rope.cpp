#include "models/rope.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <fmt/format.h>

namespace headrace::models {

namespace {

/// The pair that turns `rotations` times over the original context.
double pair_of(const Rope& rope, double rotations) {
  const auto width = static_cast<double>(rope.width);
  return width * std::log(rope.original_length / (rotations * 2 * std::numbers::pi)) / (2 * std::log(rope.theta));
}

/// 0: the frequency stays; 1: it is divided by the factor.
double yarn_share(const Rope& rope, double pair) {
  double low = pair_of(rope, rope.beta_fast);
  double high = pair_of(rope, rope.beta_slow);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rope.width - 1));
  if (low == high) high += 0.001;
  return std::clamp((pair - low) / (high - low), 0.0, 1.0);
}

double llama3_share(const Rope& rope, double frequency) {
  const double rotations = rope.original_length * frequency / (2 * std::numbers::pi);
  const double range = rope.high_frequency_factor - rope.low_frequency_factor;
  return 1 - std::clamp((rotations - rope.low_frequency_factor) / range, 0.0, 1.0);
}

double frequency_of(const Rope& rope, std::int64_t index) {
  const auto pair = static_cast<double>(index);
  const double frequency = std::pow(rope.theta, -2 * pair / static_cast<double>(rope.width));
  double share = 0;
  if (rope.scaling == Rope::Scaling::linear) share = 1;
  if (rope.scaling == Rope::Scaling::yarn) share = yarn_share(rope, pair);
  if (rope.scaling == Rope::Scaling::llama3) share = llama3_share(rope, frequency);
  return frequency / rope.factor * share + frequency * (1 - share);
}

void read_yarn(const Checkpoint& file, const ConfigReader& reader, Rope& rope) {
  rope.beta_fast = reader.positive("rope.scaling.yarn_beta_fast", rope.beta_fast);
  rope.beta_slow = reader.positive("rope.scaling.yarn_beta_slow", rope.beta_slow);
  rope.truncate = file.boolean("rope.scaling.truncate").value_or(rope.truncate);
  if (rope.theta <= 1) reader.refuse("rope.freq_base", "a number above 1", fmt::format("{}", rope.theta));
  const auto must_be = [&](std::string_view key, double expected) {
    const double value = file.number(key).value_or(expected);
    if (value != expected) reader.refuse(key, fmt::format("{}", expected), fmt::format("{}", value));
  };
  must_be("rope.scaling.yarn_ext_factor", 1);
  must_be("rope.scaling.yarn_log_multiplier", 0);
  const double standard = rope.factor > 1 ? 0.1 * std::log(rope.factor) + 1 : 1;
  rope.magnitude =
      reader.positive("rope.scaling.yarn_attn_factor", standard) * reader.positive("rope.scaling.attn_factor", 1.0);
}

}  // namespace

Rope read_rope(const Checkpoint& file, std::int64_t head_width, bool truncate) {
  const ConfigReader reader(file);
  Rope rope;
  rope.width = head_width;
  rope.truncate = truncate;
  const std::int64_t rotated = reader.size("rope.dimension_count", head_width);
  if (rotated != head_width || rotated % 2 != 0) {
    reader.refuse("rope.dimension_count", fmt::format("the whole, even head width {}", head_width),
                  std::to_string(rotated));
  }
  rope.theta = reader.positive("rope.freq_base", rope.theta);
  const std::string scaling = file.string("rope.scaling.type").value_or("none");
  if (scaling == "none") return rope;
  rope.factor = reader.positive("rope.scaling.factor");
  if (scaling == "linear") {
    rope.scaling = Rope::Scaling::linear;
    return rope;
  }
  if (scaling != "yarn" && scaling != "llama3") {
    reader.refuse("rope.scaling.type", "none, linear, yarn or llama3", scaling);
  }
  rope.original_length = static_cast<double>(reader.size("rope.scaling.original_context_length"));
  if (scaling == "yarn") {
    rope.scaling = Rope::Scaling::yarn;
    read_yarn(file, reader, rope);
    return rope;
  }
  rope.scaling = Rope::Scaling::llama3;
  rope.low_frequency_factor = reader.positive("rope.scaling.low_freq_factor");
  rope.high_frequency_factor = reader.positive("rope.scaling.high_freq_factor");
  if (rope.high_frequency_factor <= rope.low_frequency_factor) {
    reader.refuse("rope.scaling.high_freq_factor", fmt::format("a number above {}", rope.low_frequency_factor),
                  fmt::format("{}", rope.high_frequency_factor));
  }
  return rope;
}

ir::ValueId rope_frequencies(ir::Builder& builder, const Rope& rope) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < rope.width / 2; ++i) {
    values.push_back(static_cast<double>(static_cast<float>(frequency_of(rope, i))));
  }
  return builder.op("constant", {},
                    {{"shape", std::vector<std::int64_t>{rope.width / 2}}, {"values", std::move(values)}});
}

}  // namespace headrace::models
