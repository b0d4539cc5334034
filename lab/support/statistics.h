// fagen: median, percentiles and bootstrap intervals of timing samples.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <vector>

namespace fagen::lab {

/// The value below which `fraction` of the samples lie, linear between order statistics. NaN when empty.
double percentile(std::vector<double> samples, double fraction);
inline double median(const std::vector<double> &samples) { return percentile(samples, 0.5); }

struct Interval {
  double low, high;
  double width() const { return high - low; }
};

/// The samples of each segment. Those of one segment resemble each other (clock, temperature), so a resample draws
/// segments first, and then samples within each drawn segment.
using Segments = std::vector<std::vector<double>>;

constexpr int kResamples = 10'000;

/// 95 % percentile-bootstrap interval of the median of all samples. NaN when there is none.
Interval intervalOfMedian(const Segments &segments, uint64_t seed, int resamples = kResamples);
/// The same of median(a) / median(b). Segments of one number ran side by side and are drawn together.
Interval ratioOfMedians(const Segments &a, const Segments &b, uint64_t seed, int resamples = kResamples);

} // namespace fagen::lab
