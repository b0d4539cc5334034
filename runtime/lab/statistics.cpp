// fagen: median, percentiles and bootstrap intervals of timing samples.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "statistics.h"
#include "random.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fagen::lab {

double percentile(std::vector<double> samples, double fraction) {
  if (samples.empty())
    return std::numeric_limits<double>::quiet_NaN();
  std::sort(samples.begin(), samples.end());
  double position = fraction * static_cast<double>(samples.size() - 1);
  auto below = static_cast<size_t>(position);
  size_t above = std::min(below + 1, samples.size() - 1);
  double weight = position - static_cast<double>(below);
  return samples[below] * (1 - weight) + samples[above] * weight;
}

Interval ratioOfMedians(const std::vector<double> &a, const std::vector<double> &b, uint64_t seed, int resamples) {
  std::vector<double> ratios, drawA(a.size()), drawB(b.size());
  uint32_t draw = 0;
  auto resample = [&](const std::vector<double> &from, std::vector<double> &into) {
    for (double &value : into)
      value = from[philox({draw++, 0, 0, 1}, seed)[0] % from.size()];
    return median(into);
  };
  for (int i = 0; i < resamples && !a.empty() && !b.empty(); ++i) {
    double top = resample(a, drawA);
    ratios.push_back(top / resample(b, drawB));
  }
  return {percentile(ratios, 0.025), percentile(ratios, 0.975)};
}

} // namespace fagen::lab
