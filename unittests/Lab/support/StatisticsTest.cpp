// fagen: statistics of small sample lists.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/support/statistics.h"
#include "lab/support/random.h"

#include <chrono>
#include <cmath>
#include <gtest/gtest.h>
#include <set>

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

/// `rounds` segments of nine samples around `center`, each segment off by up to `drift`.
Segments noisy(double center, double noise, double drift, uint64_t seed, int rounds = 3) {
  NormalStream normal(seed, 0), offset(seed, 1);
  Segments segments;
  for (int round = 0; round < rounds; ++round) {
    auto &segment = segments.emplace_back();
    for (int i = 0; i < 9; ++i)
      segment.push_back(center * (1 + noise * normal.at(round * 9 + i) + drift * offset.at(round)));
  }
  return segments;
}

TEST(Statistics, ratioIntervalHoldsTheRatio) {
  Interval interval = ratioOfMedians(noisy(90, 0.01, 0, 1), noisy(100, 0.01, 0, 2), 1);
  EXPECT_LT(interval.low, 0.9);
  EXPECT_GT(interval.high, 0.9);
  EXPECT_LT(interval.high, 1);
  EXPECT_GT(interval.low, 0.85);
}

TEST(Statistics, intervalOfEqualSamplesIsAPoint) {
  Interval interval = ratioOfMedians({{2, 2, 2}}, {{4, 4, 4}}, 1);
  EXPECT_EQ(interval.low, 0.5);
  EXPECT_EQ(interval.high, 0.5);
  Interval alone = intervalOfMedian({{7, 7}, {7}}, 1);
  EXPECT_EQ(alone.low, 7);
  EXPECT_EQ(alone.high, 7);
}

TEST(Statistics, anEvenNumberHasItsMedianInTheMiddle) {
  std::set<double> seen;
  for (uint64_t seed = 0; seed < 30; ++seed)
    seen.insert(intervalOfMedian({{1, 3}}, seed, 1).low); // of one resample
  EXPECT_EQ(seen, (std::set<double>{1, 2, 3}));
}

TEST(Statistics, nothingHasNoInterval) {
  EXPECT_TRUE(std::isnan(ratioOfMedians({{}}, {{1}}, 1).low));
  EXPECT_TRUE(std::isnan(intervalOfMedian({}, 1).high));
}

/// Samples of one segment resemble each other: nine of them are not nine independent ones.
TEST(Statistics, segmentsThatDisagreeWidenTheInterval) {
  EXPECT_GT(intervalOfMedian(noisy(100, 0.001, 0.03, 1), 1).width(),
            10 * intervalOfMedian(noisy(100, 0.001, 0, 1), 1).width());
}

/// What drifts for both side by side cancels in their ratio.
TEST(Statistics, driftThatBothShareCancels) {
  Segments a, b;
  for (double clock : {1.0, 1.1, 1.2}) {
    a.push_back({90 * clock, 90.01 * clock});
    b.push_back({100 * clock, 100.01 * clock});
  }
  EXPECT_LT(ratioOfMedians(a, b, 1).width(), 1e-3);
  std::swap(b.front(), b.back());
  EXPECT_GT(ratioOfMedians(a, b, 1).width(), 0.1);
}

/// The interval is where it claims to be: in 95 % of repetitions the true median lies in it, up to small samples.
TEST(Statistics, coverage) {
  int held = 0;
  constexpr int kTrials = 300;
  for (int trial = 0; trial < kTrials; ++trial) {
    Interval interval = intervalOfMedian({noisy(100, 0.01, 0, trial, 1)[0], noisy(100, 0.01, 0, 1000 + trial, 1)[0],
                                          noisy(100, 0.01, 0, 2000 + trial, 1)[0]},
                                         trial, 500);
    held += interval.low <= 100 && 100 <= interval.high;
  }
  EXPECT_GT(held, kTrials * 0.90);
  EXPECT_LE(held, kTrials);
}

TEST(Statistics, tenThousandResamplesAreFast) {
  auto begin = std::chrono::steady_clock::now();
  ratioOfMedians(noisy(90, 0.01, 0, 1), noisy(100, 0.01, 0, 2), 1);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

} // namespace
