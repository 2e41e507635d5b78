#include "cli/suggest.hpp"

#include <algorithm>
#include <vector>

namespace headrace::cli {

namespace {

/// Longer words were not mistyped, and the distance takes the product of the lengths.
constexpr std::size_t longest_word = 64;

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Rows i - 2, i - 1 and i of the table of distances between the first i of a and the first j of b.
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) current[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, previous);
    std::swap(previous, current);
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
  }
  return current[b.size()];
}

std::optional<std::string> nearest(std::string_view word, std::span<const std::string> candidates) {
  const auto without_dashes = [](std::string_view text) {
    return text.substr(std::min(text.find_first_not_of('-'), text.size()));
  };
  const std::string_view bare = without_dashes(word);
  if (bare.empty() || bare.size() > longest_word) return std::nullopt;
  const std::string* best = nullptr;
  std::size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const std::string_view other = without_dashes(candidate);
    const bool completes = bare.size() >= 2 && other.starts_with(bare);
    const std::size_t distance = completes ? 0 : edit_distance(bare, other);
    const std::size_t tolerance = std::max(bare.size(), other.size()) / 3;
    const bool meant = completes || (distance <= std::max<std::size_t>(tolerance, 1) && distance < bare.size());
    if (meant && (best == nullptr || distance < best_distance)) {
      best = &candidate;
      best_distance = distance;
    }
  }
  if (best == nullptr) return std::nullopt;
  return *best;
}

}  // namespace headrace::cli
