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

namespace {

/// Indices below a bound, four to a call of the generator.
class Draw {
public:
  explicit Draw(uint64_t seed) : seed(seed) {}
  size_t below(size_t bound) {
    if (next == words.size()) {
      words = philox({counter++, 0, 0, 1}, seed);
      next = 0;
    }
    return static_cast<size_t>((uint64_t{words[next++]} * bound) >> 32);
  }

private:
  uint64_t seed;
  uint32_t counter = 0;
  std::array<uint32_t, 4> words{};
  size_t next = 4;
};

/// As percentile(values, 0.5), in linear time. Reorders the values.
double medianInPlace(std::vector<double> &values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2)
    return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

Segments withoutEmpty(const Segments &segments) {
  Segments kept;
  std::copy_if(segments.begin(), segments.end(), std::back_inserter(kept),
               [](const std::vector<double> &segment) { return !segment.empty(); });
  return kept;
}

/// The median of a resample that takes the segments numbered in `drawn`, modulo their count.
double resampledMedian(const Segments &segments, const std::vector<size_t> &drawn, Draw &draw,
                       std::vector<double> &scratch) {
  scratch.clear();
  for (size_t i = 0; i < segments.size(); ++i) {
    const std::vector<double> &segment = segments[drawn[i] % segments.size()];
    for (size_t j = 0; j < segment.size(); ++j)
      scratch.push_back(segment[draw.below(segment.size())]);
  }
  return medianInPlace(scratch);
}

/// Where the middle 95 % of what `figure(drawn segments, generator)` gives lie.
template <typename Figure> Interval bootstrap(size_t segments, uint64_t seed, int resamples, Figure figure) {
  std::vector<double> figures;
  std::vector<size_t> drawn(segments);
  Draw draw(seed);
  for (int i = 0; i < resamples && segments > 0; ++i) {
    for (size_t &segment : drawn)
      segment = draw.below(segments);
    figures.push_back(figure(drawn, draw));
  }
  return {percentile(figures, 0.025), percentile(figures, 0.975)};
}

} // namespace

Interval intervalOfMedian(const Segments &segments, uint64_t seed, int resamples) {
  Segments kept = withoutEmpty(segments);
  std::vector<double> scratch;
  return bootstrap(kept.size(), seed, resamples, [&](const std::vector<size_t> &drawn, Draw &draw) {
    return resampledMedian(kept, drawn, draw, scratch);
  });
}

Interval ratioOfMedians(const Segments &a, const Segments &b, uint64_t seed, int resamples) {
  Segments top = withoutEmpty(a), bottom = withoutEmpty(b);
  size_t segments = top.empty() || bottom.empty() ? 0 : std::max(top.size(), bottom.size());
  std::vector<double> scratch;
  return bootstrap(segments, seed, resamples, [&](const std::vector<size_t> &drawn, Draw &draw) {
    double over = resampledMedian(top, drawn, draw, scratch);
    return over / resampledMedian(bottom, drawn, draw, scratch);
  });
}

} // namespace fagen::lab
