// Median and spread of a few repeated measurements.
#pragma once

#include <cstddef>
#include <span>

namespace headrace::measure {

/// Order statistics. The quartiles say how far runs lie apart; smallest and largest say what one run can be.
struct Summary {
  double median = 0;
  double lower = 0;  ///< quartile
  double upper = 0;
  double smallest = 0;
  double largest = 0;
  std::size_t count = 0;
};

/// Quantiles between two values are interpolated linearly (type 7 of Hyndman and Fan 1996). Throws InternalError if
/// there are no values.
Summary summarize(std::span<const double> values);

}  // namespace headrace::measure
