// Scoring: what a model thinks of a given text, teacher-forced. Perplexity and the comparisons with oracles stand on
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "run/engine.hpp"

namespace headrace::run {

struct ScoreOptions {
  /// Of all rows: the arithmetic that is scored.
  TokenClass token_class = TokenClass::prompt;
  std::function<void(std::int64_t, std::int64_t)> on_progress;  ///< tokens done, of all
};

/// ln p(tokens[i] | tokens[0 .. i)) for i in [1, n): n - 1 values in nats, from a session of its own. Throws as
/// Engine::step does, and InputError if there are fewer than 2 tokens or more than the context holds.
std::vector<double> log_likelihoods(Engine& engine, std::span<const TokenId> tokens, const ScoreOptions& options);

/// ln softmax(logits)[token], computed in double.
double log_probability(std::span<const float> logits, TokenId token);

}  // namespace headrace::run
