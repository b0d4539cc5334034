// fagen: statistics of small sample lists.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "statistics.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace fagen::lab;

namespace {

TEST(Statistics, percentiles) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(percentile({10, 20, 30, 40, 50}, 0.9), 46);
  EXPECT_EQ(percentile({10, 20}, 0), 10);
  EXPECT_EQ(percentile({10, 20}, 1), 20);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(Statistics, ratioIntervalHoldsTheRatio) {
  std::vector<double> a, b;
  for (int i = 0; i < 27; ++i) {
    a.push_back(90 + i % 5);
    b.push_back(100 + i % 7);
  }
  Interval interval = ratioOfMedians(a, b, 1);
  EXPECT_LE(interval.low, median(a) / median(b));
  EXPECT_GE(interval.high, median(a) / median(b));
  EXPECT_LT(interval.high, 1);
  EXPECT_GT(interval.high - interval.low, 0);
}

TEST(Statistics, intervalOfEqualSamplesIsAPoint) {
  Interval interval = ratioOfMedians({2, 2, 2}, {4, 4, 4}, 1);
  EXPECT_EQ(interval.low, 0.5);
  EXPECT_EQ(interval.high, 0.5);
}

} // namespace
