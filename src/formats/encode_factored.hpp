// Searches for the whole factors of groups that share one f16 scale, or one f16 scale and one f16 minimum: the outer
// half of the search for the k-quants' blocks. Errors are always those of what the block will decode to.
#pragma once

#include <cmath>
#include <limits>

#include "formats/encode_search.hpp"

namespace headrace::formats {

/// Of groups without minimums.
template <int groups>
struct FactoredScale {
  float scale = 0;
  float factors[groups] = {};
  float error = std::numeric_limits<float>::infinity();
};

/// The best factors for a shared scale (not 0): each group tries the two beside the scale that it wants.
template <int groups, int elements, class Levels, class Factors>
FactoredScale<groups> choose_factors(const float* in, const float* wanted, float scale) noexcept {
  FactoredScale<groups> found{.scale = scale, .error = 0};
  for (int g = 0; g < groups; ++g) {
    const float below = std::floor(wanted[g] / scale);
    float least = std::numeric_limits<float>::infinity();
    for (const float beside : {below, below + 1}) {
      const float factor = clamped(beside, Factors::low, Factors::high);
      const float error = squared_error<elements, Levels>(in + g * elements, scale * factor, 0);
      if (error < least) {
        least = error;
        found.factors[g] = factor;
      }
    }
    found.error += least;
  }
  return found;
}

/// The scale that minimizes the squared error for given factors f and the levels l that they lead to:
/// sum(f x l) / sum(f f l l).
template <int groups, int elements, class Levels>
float refit_scale(const float* in, const FactoredScale<groups>& found) noexcept {
  float xl = 0;
  float ll = 0;
  for (int g = 0; g < groups; ++g) {
    const float factor = found.factors[g];
    if (factor == 0) continue;
    const LevelSums sums = level_sums<elements, Levels>(in + g * elements, 1 / (found.scale * factor), 0);
    xl += factor * sums.xl;
    ll += factor * factor * sums.ll;
  }
  return ll > 0 ? xl / ll : 0;
}

/// A block of groups without minimums, and in `levels` its levels. Factors are whole numbers of the range of `Factors`.
template <int groups, int elements, class Levels, class Factors>
FactoredScale<groups> search_factored(const float* in, const ScaleGrid& grid, float* levels) noexcept {
  float wanted[groups];
  float largest = 0;
  for (int g = 0; g < groups; ++g) {
    wanted[g] = best_scale<elements, Levels>(in + g * elements, grid);
    largest = std::fabs(wanted[g]) > std::fabs(largest) ? wanted[g] : largest;
  }
  FactoredScale<groups> best;
  const auto consider = [&](float scale) {
    if (scale == 0 || scale == best.scale) return false;
    const auto found = choose_factors<groups, elements, Levels, Factors>(in, wanted, scale);
    const bool better = found.error < best.error;
    if (better) best = found;
    return better;
  };
  for (const float factor : {Factors::low, Factors::low + 1, Factors::high, Factors::high - 1}) {
    consider(f16_scale(largest / factor));
  }
  for (int round = 0; round < 3 && best.scale != 0; ++round) {
    if (!consider(f16_scale(refit_scale<groups, elements, Levels>(in, best)))) break;
  }
  for (int g = 0; g < groups; ++g) {
    nearest_levels<elements, Levels>(in + g * elements, best.scale * best.factors[g], 0, levels + g * elements);
  }
  return best;
}

/// Of groups with minimums.
template <int groups>
struct FactoredAffine {
  float scale = 0;
  float minimum = 0;  ///< at most 0
  float scale_factors[groups] = {};
  float minimum_factors[groups] = {};
  float error = std::numeric_limits<float>::infinity();
};

/// Numbers of a block and what each of its groups wants.
template <int groups>
struct AffineWishes {
  const float* in;
  AffineFit fits[groups];
  float sums[groups];  ///< of the group's numbers
};

/// The best factors for a shared scale and minimum: each group tries the scales beside the one that it wants, and for
/// each the minimums beside the one that is best for the levels it leads to.
template <int groups, int elements, class Levels, class Factors>
FactoredAffine<groups> choose_factors(const AffineWishes<groups>& wishes, float scale, float minimum) noexcept {
  FactoredAffine<groups> found{.scale = scale, .minimum = minimum, .error = 0};
  for (int g = 0; g < groups; ++g) {
    const float* x = wishes.in + g * elements;
    const AffineFit& fit = wishes.fits[g];
    const float below = std::floor(fit.scale * inverse_or_zero(scale));
    float least = std::numeric_limits<float>::infinity();
    for (const float beside : {below, below + 1}) {
      const float scale_factor = clamped(beside, 0, Factors::high);
      const float group_scale = scale * scale_factor;
      float wanted = fit.minimum;
      if (group_scale > 0) {
        const LevelSums sums = level_sums<elements, Levels>(x, 1 / group_scale, fit.minimum);
        wanted = (wishes.sums[g] - group_scale * sums.l) / static_cast<float>(elements);
      }
      const float under = minimum == 0 ? 0 : std::floor(wanted / minimum);
      for (const float next_to : {under, under + 1}) {
        const float minimum_factor = clamped(next_to, 0, Factors::high);
        const float error = squared_error<elements, Levels>(x, group_scale, minimum * minimum_factor);
        if (error < least) {
          least = error;
          found.scale_factors[g] = scale_factor;
          found.minimum_factors[g] = minimum_factor;
        }
      }
    }
    found.error += least;
  }
  return found;
}

struct ScaleAndMinimumFit {
  float scale;
  float minimum;
};

/// The scale s and minimum m that minimize the squared error for given factors f, h and the levels l that they lead to,
/// by the two equations
///     s sum(f f l l) + m sum(f h l) = sum(f x l)
///     s sum(f h l)   + m sum(h h)   = sum(h x).
template <int groups, int elements, class Levels>
ScaleAndMinimumFit refit_affine(const AffineWishes<groups>& wishes, const FactoredAffine<groups>& found) noexcept {
  float ffll = 0;
  float fhl = 0;
  float hh = 0;
  float fxl = 0;
  float hx = 0;
  for (int g = 0; g < groups; ++g) {
    const float f = found.scale_factors[g];
    const float h = found.minimum_factors[g];
    const LevelSums sums =
        level_sums<elements, Levels>(wishes.in + g * elements, inverse_or_zero(found.scale * f), found.minimum * h);
    ffll += f * f * sums.ll;
    fhl += f * h * sums.l;
    hh += h * h * static_cast<float>(elements);
    fxl += f * sums.xl;
    hx += h * wishes.sums[g];
  }
  const float determinant = ffll * hh - fhl * fhl;
  // Near zero the two are told apart by rounding errors only.
  if (determinant > 1e-6f * ffll * hh) {
    return {(hh * fxl - fhl * hx) / determinant, (ffll * hx - fhl * fxl) / determinant};
  }
  if (ffll > 0) return {fxl / ffll, found.minimum};
  return {found.scale, hh > 0 ? hx / hh : 0};
}

/// A block of groups with minimums, and in `levels` its levels. Factors are whole numbers from 0 to Factors::high.
template <int groups, int elements, class Levels, class Factors>
FactoredAffine<groups> search_factored_affine(const float* in, const AffineGrid& grid, float* levels) noexcept {
  AffineWishes<groups> wishes{};
  wishes.in = in;
  float largest_scale = 0;
  float least_minimum = 0;
  for (int g = 0; g < groups; ++g) {
    const float* x = in + g * elements;
    const AffineFit fit = best_affine<elements, Levels>(x, grid);
    wishes.fits[g] = fit;
    for (int i = 0; i < elements; ++i) wishes.sums[g] += x[i];
    largest_scale = fit.scale > largest_scale ? fit.scale : largest_scale;
    least_minimum = fit.minimum < least_minimum ? fit.minimum : least_minimum;
  }
  FactoredAffine<groups> best = choose_factors<groups, elements, Levels, Factors>(
      wishes, f16_scale(largest_scale / Factors::high), f16_scale(least_minimum / Factors::high));
  for (int round = 0; round < 4; ++round) {
    const ScaleAndMinimumFit fit = refit_affine<groups, elements, Levels>(wishes, best);
    const auto found = choose_factors<groups, elements, Levels, Factors>(
        wishes, f16_scale(fit.scale > 0 ? fit.scale : 0), f16_scale(fit.minimum < 0 ? fit.minimum : 0));
    if (!(found.error < best.error)) break;
    best = found;
  }
  for (int g = 0; g < groups; ++g) {
    nearest_levels<elements, Levels>(in + g * elements, best.scale * best.scale_factors[g],
                                     best.minimum * best.minimum_factors[g], levels + g * elements);
  }
  return best;
}

/// What q4_k and q5_k share: codes up to `largest_code` of 256 numbers, and the first 16 bytes of the block: scale,
/// minimum and their factors.
template <int largest_code>
void encode_factored_affine(const float* in, std::byte* out, std::uint8_t* codes) noexcept {
  constexpr AffineGrid grid{.first = -0.3f, .step = 0.3f, .count = 4, .rounds = 2};
  float levels[256];
  const auto found =
      search_factored_affine<8, 32, UniformLevels<0, largest_code>, UniformLevels<0, 63>>(in, grid, levels);
  std::int8_t scales[8];
  std::int8_t minimums[8];
  codes_of_whole_levels<0>(levels, 256, codes);
  for (int g = 0; g < 8; ++g) {
    scales[g] = static_cast<std::int8_t>(found.scale_factors[g]);
    minimums[g] = static_cast<std::int8_t>(found.minimum_factors[g]);
  }
  store_u16(out, f32_to_f16(found.scale));
  store_u16(out + 2, f32_to_f16(-found.minimum));
  pack_factors_of_6_bits(scales, minimums, out + 4);
}

}  // namespace headrace::formats
