// Sampling, in doubles. Only candidates that a filter may keep are ever sorted.
#include "text/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/error.hpp"

namespace headrace::text {
namespace {

struct Scored {
  std::int64_t token;
  double logit;
  double weight;  ///< exp((logit - best) / temperature)
};

/// Descending logit; equal logits by ascending id, so that ties are the same everywhere.
bool comes_first(const Scored& a, const Scored& b) noexcept {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
}

void check_range(const char* name, double value, double low, double high) {
  if (!(value >= low && value <= high)) {
    fail<UsageError>("{}: expected a number from {} to {}, found {}", name, low, high, value);
  }
}

/// Divides positive logits and multiplies others, once per distinct recent token (Keskar et al., "CTRL", 2019).
void penalize(std::vector<Scored>& scored, std::span<const std::int64_t> recent, const SamplerParams& params) {
  if (params.repetition_penalty == 1.0) return;
  const std::size_t count = std::min(recent.size(), params.repetition_window);
  std::vector<std::int64_t> tokens(recent.end() - static_cast<std::ptrdiff_t>(count), recent.end());
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  for (const std::int64_t token : tokens) {
    if (token < 0 || static_cast<std::size_t>(token) >= scored.size()) {
      fail<InputError>("recent tokens: expected ids from 0 to {}, found {}", scored.size() - 1, token);
    }
    double& logit = scored[static_cast<std::size_t>(token)].logit;
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
  }
}

/// All tokens with their penalized logits, by id.
std::vector<Scored> score(std::span<const float> logits, std::span<const std::int64_t> recent,
                          const SamplerParams& params) {
  if (logits.empty()) fail<InputError>("logits: expected at least one, found none");
  std::vector<Scored> scored(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == std::numeric_limits<float>::infinity()) {
      fail<InputError>("logits: expected finite numbers or -inf, found {} for token {}", logits[i], i);
    }
    scored[i] = {static_cast<std::int64_t>(i), static_cast<double>(logits[i]), 0};
  }
  penalize(scored, recent, params);
  return scored;
}

Scored best_of(const std::vector<Scored>& scored) {
  const Scored best = *std::min_element(scored.begin(), scored.end(), comes_first);
  if (std::isinf(best.logit)) fail<InputError>("logits: expected a token that can be drawn, found only -inf");
  return best;
}

/// The largest of `logits`, 16 lanes side by side; NaN if one is not finite.
float largest_of(std::span<const float> logits) {
  constexpr std::size_t lanes = 16;
  float best[lanes];
  float zeros[lanes] = {};  // NaN behind a NaN or an infinity
  std::fill(std::begin(best), std::end(best), -std::numeric_limits<float>::infinity());
  const float* x = logits.data();
  const std::size_t whole = logits.size() / lanes * lanes;
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t l = 0; l < lanes; ++l) best[l] = best[l] < x[i + l] ? x[i + l] : best[l];
  }
  for (std::size_t i = 0; i < whole; i += lanes) {
    for (std::size_t l = 0; l < lanes; ++l) zeros[l] += x[i + l] - x[i + l];
  }
  for (std::size_t i = whole; i < logits.size(); ++i) {
    best[0] = std::max(best[0], x[i]);
    zeros[0] += x[i] - x[i];
  }
  return *std::max_element(std::begin(best), std::end(best)) +
         std::accumulate(std::begin(zeros), std::end(zeros), 0.0F);
}

/// The first of the largest logits, or -1 if one is not finite or there is none: then the general way decides. Greedy
/// decoding takes this every step, while the workers wait, so it looks for the place in one block alone.
std::int64_t first_largest(std::span<const float> logits) {
  constexpr std::size_t block = 1024;
  float largest = -std::numeric_limits<float>::infinity();
  std::size_t place = logits.size();
  for (std::size_t begin = 0; begin < logits.size(); begin += block) {
    const float here = largest_of(logits.subspan(begin, std::min(block, logits.size() - begin)));
    if (std::isnan(here)) return -1;
    if (here > largest) {
      largest = here;
      place = begin;
    }
  }
  if (place == logits.size()) return -1;
  return std::find(logits.begin() + static_cast<std::ptrdiff_t>(place), logits.end(), largest) - logits.begin();
}

/// Tokens in order, as far as somebody looked: a vocabulary has 150 000 tokens, and a draw needs a few of them.
class Ordered {
 public:
  explicit Ordered(std::vector<Scored> scored) : scored_(std::move(scored)) {}

  [[nodiscard]] std::size_t size() const noexcept { return scored_.size(); }
  [[nodiscard]] const Scored& at(std::size_t i) {
    if (i >= sorted_) sort_front(std::max({i + 1, std::size_t{64}, sorted_ * 8}));
    return scored_[i];
  }
  void keep_first(std::size_t count) {
    sort_front(count);
    scored_.resize(std::min(count, scored_.size()));
    sorted_ = scored_.size();
  }
  /// Drops tokens of less weight. The order stays, so what was sorted stays sorted.
  void drop_below(double weight) {
    std::erase_if(scored_, [&](const Scored& each) { return each.weight < weight; });
    sorted_ = std::min(sorted_, scored_.size());
  }
  void set_weights(double best, double temperature) {
    for (auto& each : scored_) each.weight = std::exp((each.logit - best) / temperature);
  }
  /// In the order of the vector, which the same operations always make the same.
  [[nodiscard]] double total() const {
    double sum = 0;
    for (const auto& each : scored_) sum += each.weight;
    return sum;
  }

 private:
  void sort_front(std::size_t count) {
    count = std::min(count, scored_.size());
    if (count <= sorted_) return;
    const auto from = scored_.begin() + static_cast<std::ptrdiff_t>(sorted_);
    const auto middle = scored_.begin() + static_cast<std::ptrdiff_t>(count);
    if (middle != scored_.end()) std::nth_element(from, middle, scored_.end(), comes_first);
    std::sort(from, middle, comes_first);
    sorted_ = count;
  }

  std::vector<Scored> scored_;
  std::size_t sorted_ = 0;
};

/// The tokens that pass all filters, with weights; the temperature is not 0.
Ordered filtered(std::vector<Scored> scored, double best, const SamplerParams& params) {
  Ordered ordered(std::move(scored));
  if (params.top_k > 0 && params.top_k < ordered.size()) ordered.keep_first(params.top_k);
  ordered.set_weights(best, params.temperature);
  if (params.top_p < 1) {
    const double wanted = params.top_p * ordered.total();
    std::size_t count = 0;
    for (double sum = 0; count == 0 || (count < ordered.size() && sum < wanted); ++count) {
      sum += ordered.at(count).weight;
    }
    ordered.keep_first(count);
  }
  // A weight that underflows to 0 can never be drawn, like a logit of -inf.
  ordered.drop_below(std::max(params.min_p, std::numeric_limits<double>::denorm_min()));
  return ordered;
}

}  // namespace

void SamplerParams::validate() const {
  constexpr double max = std::numeric_limits<double>::max();
  if (!(repetition_penalty > 0 && repetition_penalty <= max)) {
    fail<UsageError>("repetition_penalty: expected a number above 0, found {}", repetition_penalty);
  }
  if (!(temperature >= 0 && temperature <= max)) {
    fail<UsageError>("temperature: expected a number of at least 0, found {}", temperature);
  }
  check_range("top_p", top_p, 0, 1);
  check_range("min_p", min_p, 0, 1);
}

std::vector<Candidate> candidates(std::span<const float> logits, std::span<const std::int64_t> recent,
                                  const SamplerParams& params) {
  params.validate();
  auto scored = score(logits, recent, params);
  const Scored best = best_of(scored);
  if (params.temperature == 0) return {{best.token, 1.0}};
  auto ordered = filtered(std::move(scored), best.logit, params);
  const double total = ordered.total();
  std::vector<Candidate> result;
  result.reserve(ordered.size());
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    const Scored& each = ordered.at(i);
    result.push_back({each.token, each.weight / total});
  }
  return result;
}

std::int64_t sample(std::span<const float> logits, std::span<const std::int64_t> recent, const SamplerParams& params,
                    std::uint64_t position) {
  params.validate();
  if (params.temperature == 0 && params.repetition_penalty == 1.0) {
    if (const std::int64_t token = first_largest(logits); token >= 0) return token;
  }
  auto scored = score(logits, recent, params);
  const Scored best = best_of(scored);
  if (params.temperature == 0) return best.token;
  auto ordered = filtered(std::move(scored), best.logit, params);
  const double wanted = uniform(params.seed, position) * ordered.total();
  double sum = 0;
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    sum += ordered.at(i).weight;
    if (wanted < sum) return ordered.at(i).token;
  }
  return ordered.at(ordered.size() - 1).token;  // rounding may leave the sum just below the total
}

PhiloxBlock philox(const std::uint32_t (&counter)[4], const std::uint32_t (&key)[2]) noexcept {
  PhiloxBlock x{{counter[0], counter[1], counter[2], counter[3]}};
  std::uint32_t k0 = key[0];
  std::uint32_t k1 = key[1];
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53U} * x.words[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * x.words[2];
    x = {{static_cast<std::uint32_t>(b >> 32U) ^ x.words[1] ^ k0, static_cast<std::uint32_t>(b),
          static_cast<std::uint32_t>(a >> 32U) ^ x.words[3] ^ k1, static_cast<std::uint32_t>(a)}};
    k0 += 0x9E3779B9U;
    k1 += 0xBB67AE85U;
  }
  return x;
}

double uniform(std::uint64_t seed, std::uint64_t position) noexcept {
  const std::uint32_t counter[4] = {static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32U),
                                    0, 0};
  const std::uint32_t key[2] = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32U)};
  const auto block = philox(counter, key);
  const std::uint64_t bits = (std::uint64_t{block.words[0]} << 32U | block.words[1]) >> 11U;
  return static_cast<double>(bits) * 0x1.0p-53;
}

}  // namespace headrace::text
