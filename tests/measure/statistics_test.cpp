// Quantiles of few values, by hand.
#include "measure/statistics.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace headrace::measure {
namespace {

TEST(Summarize, InterpolatesBetweenSortedValues) {
  const std::vector<double> values = {4, 1, 10, 2};
  const Summary summary = summarize(values);
  EXPECT_DOUBLE_EQ(summary.median, 3);
  EXPECT_DOUBLE_EQ(summary.lower, 1.75);
  EXPECT_DOUBLE_EQ(summary.upper, 5.5);
  EXPECT_EQ(summary.smallest, 1);
  EXPECT_EQ(summary.largest, 10);
  EXPECT_EQ(summary.count, 4U);
}

TEST(Summarize, TakesOneValueAsItIs) {
  const std::vector<double> values = {7};
  const Summary summary = summarize(values);
  EXPECT_EQ(summary.median, 7);
  EXPECT_EQ(summary.lower, 7);
  EXPECT_EQ(summary.upper, 7);
}

TEST(Summarize, RefusesNothing) { EXPECT_THROW(summarize({}), InternalError); }

}  // namespace
}  // namespace headrace::measure
