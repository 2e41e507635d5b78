// Searches for the levels and scales of a group with the least squared error: the ground of the Formats that no
// reference quantizer defines bit for bit. docs/quantize.md says what was tried. All sums are over 16 lanes in a fixed
// order, so that every machine and compiler finds the same codes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/cpu_features.hpp"
#include "base/half.hpp"
#include "formats/block.hpp"
#include "formats/encode.hpp"

namespace headrace::formats {

#if defined(__x86_64__)
/// encode_blocks, all of it built for wider registers: the same operations, the same bits.
template <GroupedBlock block, EncodeBlock encode_block>
[[gnu::flatten, gnu::target("avx2")]] void encode_blocks_avx2(const float* in, std::int64_t blocks,
                                                              std::byte* out) noexcept {
  for (std::int64_t b = 0; b < blocks; ++b) encode_block(in + b * block.elements, out + b * block.bytes);
}
template <GroupedBlock block, EncodeBlock encode_block>
[[gnu::flatten, gnu::target("avx512f,avx512bw,avx512vl,avx512dq")]] void encode_blocks_avx512(const float* in,
                                                                                              std::int64_t blocks,
                                                                                              std::byte* out) noexcept {
  for (std::int64_t b = 0; b < blocks; ++b) encode_block(in + b * block.elements, out + b * block.bytes);
}
#endif

/// Format::encode for an `encode_block` that searches, as fast as this CPU can.
template <GroupedBlock block, EncodeBlock encode_block>
EncodeBlocks encode_by_search() noexcept {
#if defined(__x86_64__)
  const CpuFeatures features = detect_cpu_features();
  if (features.avx512) return encode_blocks_avx512<block, encode_block>;
  if (features.avx2) return encode_blocks_avx2<block, encode_block>;
#endif
  return encode_blocks<block, encode_block>;
}

/// 16 numbers, in as many registers as they take.
using Lanes = float __attribute__((vector_size(64)));
inline constexpr int lane_count = 16;

[[gnu::always_inline]] inline void load_lanes(const float* in, Lanes& out) noexcept {
  __builtin_memcpy(&out, in, sizeof out);
}

/// Lane l += lane l + 8, then + 4, + 2, + 1.
[[gnu::always_inline]] inline float sum_lanes(const Lanes& lanes) noexcept {
  const auto eight = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15);
  const auto four =
      __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  return (four[0] + four[2]) + (four[1] + four[3]);
}

/// Whole numbers from `lowest` to `highest`: levels, or factors.
template <int lowest, int highest>
struct UniformLevels {
  static constexpr float low = lowest;
  static constexpr float high = highest;

  /// Rounds each of `value` to its nearest level; NaN to the lowest.
  [[gnu::always_inline]] static void nearest(Lanes& value) noexcept {
    constexpr float magic = 0x1.8p23f;  // adding it and taking it off rounds to a whole number, ties to even
    const Lanes least = Lanes{} + low;
    const Lanes greatest = Lanes{} + high;
    value = value > least ? value : least;
    value = value < greatest ? value : greatest;
    value = (value + magic) - magic;
  }
};

/// The levels of a codebook in ascending order.
template <const std::int8_t* levels, int count>
struct CodebookLevels {
  static constexpr float low = levels[0];
  static constexpr float high = levels[count - 1];

  [[gnu::always_inline]] static void nearest(Lanes& value) noexcept {
    Lanes level = Lanes{} + low;
    for (int i = 1; i < count; ++i) {
      const float middle = (static_cast<float>(levels[i - 1]) + static_cast<float>(levels[i])) / 2;
      level = value > middle ? Lanes{} + static_cast<float>(levels[i]) : level;
    }
    value = level;
  }

  static void codes_of(const float* in, int elements, std::uint8_t* codes) noexcept {
    for (int i = 0; i < elements; ++i) {
      int code = 0;
      for (int c = 1; c < count; ++c) code += in[i] >= static_cast<float>(levels[c]) ? 1 : 0;
      codes[i] = static_cast<std::uint8_t>(code);
    }
  }
};

/// Whole levels above `lowest` as codes.
template <int lowest>
void codes_of_whole_levels(const float* in, int elements, std::uint8_t* codes) noexcept {
  for (int i = 0; i < elements; ++i) codes[i] = static_cast<std::uint8_t>(static_cast<int>(in[i]) - lowest);
}

/// Sums over a group of numbers x and their levels l.
struct LevelSums {
  float l = 0;
  float ll = 0;
  float xl = 0;
};

/// Sums for the nearest levels of (x - minimum) * inverse.
template <int elements, class Levels>
LevelSums level_sums(const float* in, float inverse, float minimum) noexcept {
  Lanes l{};
  Lanes ll{};
  Lanes xl{};
  for (int i = 0; i < elements; i += lane_count) {
    Lanes x;
    load_lanes(in + i, x);
    Lanes level = (x - minimum) * inverse;
    Levels::nearest(level);
    l += level;
    ll += level * level;
    xl += x * level;
  }
  return {sum_lanes(l), sum_lanes(ll), sum_lanes(xl)};
}

[[nodiscard]] inline float inverse_or_zero(float scale) noexcept { return scale == 0 ? 0 : 1 / scale; }

/// The squared error of the nearest levels with this scale and minimum.
template <int elements, class Levels>
float squared_error(const float* in, float scale, float minimum) noexcept {
  const float inverse = inverse_or_zero(scale);
  Lanes sum{};
  for (int i = 0; i < elements; i += lane_count) {
    Lanes x;
    load_lanes(in + i, x);
    Lanes level = (x - minimum) * inverse;
    Levels::nearest(level);
    const Lanes error = x - (level * scale + minimum);
    sum += error * error;
  }
  return sum_lanes(sum);
}

/// The nearest levels themselves.
template <int elements, class Levels>
void nearest_levels(const float* in, float scale, float minimum, float* out) noexcept {
  const float inverse = inverse_or_zero(scale);
  for (int i = 0; i < elements; i += lane_count) {
    Lanes level;
    load_lanes(in + i, level);
    level = (level - minimum) * inverse;
    Levels::nearest(level);
    __builtin_memcpy(out + i, &level, sizeof level);
  }
}

[[nodiscard]] inline float clamped(float value, float low, float high) noexcept {
  return value > low ? (value < high ? value : high) : low;
}

/// Numbers below it are zeros to every Format that is searched: its least scale is 2^-24. It keeps squares and inverses
/// within range.
inline constexpr float negligible = 0x1p-40f;

/// The f16 nearest to a scale, but neither infinite nor, unless the scale is negligible, zero: factors can make up for
/// the coarse steps of the least f16s.
[[nodiscard]] inline float f16_scale(float scale) noexcept {
  if (!(std::fabs(scale) >= negligible)) return 0;
  const float rounded = f16_to_f32(f32_to_f16(clamped(scale, -65504, 65504)));
  return rounded == 0 ? std::copysign(0x1p-24f, scale) : rounded;
}

/// Where the search for a scale places the group's number of the largest magnitude: at these shares of an extreme
/// level.
struct ScaleGrid {
  float first;
  float step;
  int count;
};

/// The scale of a group without a minimum whose nearest levels have the least squared error, if any scale may be had; 0
/// for a group of zeros. Each candidate is judged by the best scale for the levels that it leads to,
/// sum(x l) / sum(l l), and both signs are tried: the range of levels is not symmetric.
template <int elements, class Levels>
float best_scale(const float* in, const ScaleGrid& grid) noexcept {
  float largest = 0;
  for (int i = 0; i < elements; ++i) largest = std::fabs(in[i]) > std::fabs(largest) ? in[i] : largest;
  if (std::fabs(largest) < negligible) return 0;
  float best = 0;
  float best_gain = 0;  // by how much the squared error is below the sum of squares
  for (const float extreme : {Levels::low, Levels::high}) {
    for (int i = 0; i < grid.count; ++i) {
      const float inverse = extreme * (grid.first + grid.step * static_cast<float>(i)) / largest;
      const LevelSums sums = level_sums<elements, Levels>(in, inverse, 0);
      if (sums.xl * sums.xl > best_gain * sums.ll) {
        best_gain = sums.xl * sums.xl / sums.ll;
        best = sums.xl / sums.ll;
      }
    }
  }
  return best;
}

/// A scale and a minimum of at most 0, and the squared error of the nearest levels.
struct AffineFit {
  float scale = 0;
  float minimum = 0;
  float error = std::numeric_limits<float>::infinity();
};

/// What minimizes the squared error for given levels; x and xx are the sums of the numbers and of their squares.
template <int elements>
AffineFit fit_affine(const LevelSums& sums, float x, float xx) noexcept {
  constexpr float n = elements;
  AffineFit fit{.scale = 0, .minimum = x / n};
  const float determinant = n * sums.ll - sums.l * sums.l;
  if (determinant > 0) {  // else all levels are equal
    fit.scale = (n * sums.xl - x * sums.l) / determinant;
    fit.minimum = (x - fit.scale * sums.l) / n;
  }
  if (fit.minimum > 0) {
    fit.minimum = 0;
    fit.scale = sums.ll > 0 ? sums.xl / sums.ll : 0;
  }
  fit.error = xx - fit.scale * sums.xl - fit.minimum * x;
  return fit;
}

/// Where the search for a scale and a minimum places the ends of a group's range: inside it by these shares of a step
/// between levels, each end by itself.
struct AffineGrid {
  float first;
  float step;
  int count;
  int rounds;  ///< of levels by the fit and the fit by the levels, at most
};

/// The best scale and minimum of a group, if any may be had.
template <int elements, class Levels>
AffineFit best_affine(const float* in, const AffineGrid& grid) noexcept {
  float least = 0;
  float greatest = in[0];
  for (int i = 0; i < elements; ++i) {
    least = in[i] < least ? in[i] : least;
    greatest = in[i] > greatest ? in[i] : greatest;
  }
  const float range = greatest - least;
  if (!(range >= negligible)) return {.scale = 0, .minimum = least, .error = 0};
  Lanes xs{};
  Lanes xxs{};
  for (int i = 0; i < elements; i += lane_count) {
    Lanes numbers;
    load_lanes(in + i, numbers);
    xs += numbers;
    xxs += numbers * numbers;
  }
  const float x = sum_lanes(xs);
  const float xx = sum_lanes(xxs);
  AffineFit best;
  const auto consider = [&](float inverse, float minimum) {
    const AffineFit fit = fit_affine<elements>(level_sums<elements, Levels>(in, inverse, minimum), x, xx);
    const bool better = fit.error < best.error;
    if (better) best = fit;
    return better;
  };
  const float step = range / Levels::high;
  for (int i = 0; i < grid.count; ++i) {
    const float low = least + step * (grid.first + grid.step * static_cast<float>(i));
    for (int j = 0; j < grid.count; ++j) {
      const float high = greatest - step * (grid.first + grid.step * static_cast<float>(j));
      if (high > low) consider(Levels::high / (high - low), low < 0 ? low : 0);
    }
  }
  for (int round = 0; round < grid.rounds && best.scale > 0; ++round) {
    if (!consider(1 / best.scale, best.minimum)) break;
  }
  return best;
}

}  // namespace headrace::formats
