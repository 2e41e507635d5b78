#include "measure/statistics.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"

namespace headrace::measure {

namespace {

double quantile(std::span<const double> sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Summary summarize(std::span<const double> values) {
  require(!values.empty(), "a summary is of at least one value");
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return {.median = quantile(sorted, 0.5),
          .lower = quantile(sorted, 0.25),
          .upper = quantile(sorted, 0.75),
          .smallest = sorted.front(),
          .largest = sorted.back(),
          .count = sorted.size()};
}

}  // namespace headrace::measure
