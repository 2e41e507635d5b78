#include "run/score.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"

namespace headrace::run {

double log_probability(std::span<const float> logits, TokenId token) {
  require(token >= 0 && static_cast<std::size_t>(token) < logits.size(), "log_probability: token out of range");
  const double largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  return static_cast<double>(logits[static_cast<std::size_t>(token)]) - largest - std::log(sum);
}

std::vector<double> log_likelihoods(Engine& engine, std::span<const TokenId> tokens, const ScoreOptions& options) {
  const std::int64_t context = engine.options().context;
  if (std::ssize(tokens) < 2 || std::ssize(tokens) > context) {
    fail<InputError>("scoring: expected 2 to {} tokens (the context), got {}", context, tokens.size());
  }
  std::vector<double> scores;
  scores.reserve(tokens.size() - 1);
  Session session = engine.open();
  const std::int64_t rows = std::min(engine.options().rows, engine.options().wanted);
  // The last token's row predicts what comes after the text: nobody asks.
  const std::int64_t inputs = std::ssize(tokens) - 1;
  std::vector<std::int64_t> wanted(static_cast<std::size_t>(std::min(rows, inputs)));
  std::iota(wanted.begin(), wanted.end(), 0);
  for (std::int64_t begin = 0; begin < inputs; begin += rows) {
    const std::int64_t count = std::min(rows, inputs - begin);
    const auto size = static_cast<std::size_t>(count);
    const StepEntry entry{&session, tokens.subspan(static_cast<std::size_t>(begin), size), options.token_class,
                          std::span(wanted).first(size)};
    engine.step({&entry, 1});
    session.commit();
    for (std::int64_t row = 0; row < count; ++row) {
      scores.push_back(log_probability(engine.logits(row), tokens[static_cast<std::size_t>(begin + row + 1)]));
    }
    if (options.on_progress) options.on_progress(begin + count, inputs);
  }
  return scores;
}

}  // namespace headrace::run
