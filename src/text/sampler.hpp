// From a row of logits to the next token: greedy, temperature, top-k, top-p, min-p, repetition penalty, seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace::text {

/// What to sample with. The order is that of the members, as in transformers: penalty, temperature, top-k, top-p,
/// min-p, each on what the one before it left.
struct SamplerParams {
  double repetition_penalty = 1.0;     ///< > 0; logits of recent tokens are divided (if positive) or multiplied by it
  std::size_t repetition_window = 64;  ///< how many of the last tokens count as recent; 0 means none
  double temperature = 0.8;            ///< >= 0; 0 is greedy
  std::size_t top_k = 0;               ///< keep the k most probable tokens; 0 keeps all
  double top_p = 1.0;                  ///< 0 … 1; keep the fewest most probable tokens that reach it; at least one
  double min_p = 0.0;                  ///< 0 … 1; keep tokens of at least this share of the most probable one's
  std::uint64_t seed = 0;

  /// Raises UsageError that names the parameter, the expected range and the value found.
  void validate() const;
};

/// A token that may be drawn.
struct Candidate {
  std::int64_t token;
  double probability;
};

/// The distribution that `sample` draws from: the tokens that pass all filters, by descending probability and then
/// ascending id, with probabilities that sum to 1. `logits` [V] are natural; `recent` are the sequence's tokens up to
/// here, oldest first. A logit of -inf means a token that cannot be drawn; NaN, +inf, an empty row and a row of
/// nothing but -inf raise InputError. Takes O(V) and a sort of what top-k and top-p may keep.
[[nodiscard]] std::vector<Candidate> candidates(std::span<const float> logits, std::span<const std::int64_t> recent,
                                                const SamplerParams& params);

/// The token at `position` of a sequence. A pure function: it depends on its arguments only, so that text can be
/// reproduced under batching and speculation. The draw inverts the cumulative distribution over the tokens in the
/// order of `candidates` at uniform(seed, position); only as much of the vocabulary is sorted as it reaches.
[[nodiscard]] std::int64_t sample(std::span<const float> logits, std::span<const std::int64_t> recent,
                                  const SamplerParams& params, std::uint64_t position);

/// A uniform number in [0, 1) of 53 random bits: Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers:
/// As Easy as 1, 2, 3", SC 2011) with the seed as key and the position as counter.
[[nodiscard]] double uniform(std::uint64_t seed, std::uint64_t position) noexcept;

/// The four words of Philox 4x32-10 for a counter and a key.
struct PhiloxBlock {
  std::uint32_t words[4];
};
[[nodiscard]] PhiloxBlock philox(const std::uint32_t (&counter)[4], const std::uint32_t (&key)[2]) noexcept;

}  // namespace headrace::text
