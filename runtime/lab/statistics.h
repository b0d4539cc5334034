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
};
/// 95 % percentile-bootstrap interval of median(a) / median(b), from `resamples` draws of a seeded generator.
Interval ratioOfMedians(const std::vector<double> &a, const std::vector<double> &b, uint64_t seed,
                        int resamples = 1000);

} // namespace fagen::lab
