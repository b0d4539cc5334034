// fagen: what the candidates that were timed let expect of the others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "surrogate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace fagen::lab::tune {

static constexpr size_t kMostKnown = 160;   ///< the fastest of them
static constexpr double kSteps = 2.0;       ///< of a numeric axis, until points are hardly alike
static constexpr double kOtherValue = 0.35; ///< likeness of two values of a structural axis
static constexpr double kRankWidth = 0.2;   ///< of the model's order
static constexpr double kNoise = 0.02;      ///< of times, over their variance
static constexpr double kCuriosity = 1.0;   ///< standard deviations
static constexpr double kAlone = 0.35, kPairs = 0.4, kTogether = 0.25;

double Surrogate::likeness(const Point &a, const Point &b) const {
  double sum = 0, squares = 0, product = 1;
  auto count = [&](double value) {
    sum += value;
    squares += value * value;
    product *= value;
  };
  for (size_t axis = 0; axis < space.axes.size(); ++axis) {
    int apart = std::abs(a[axis] - b[axis]);
    count(apart == 0 ? 1 : space.axes[axis].structural ? kOtherValue : std::exp(-apart / kSteps));
  }
  double ranksApart = (ranks.at(a) - ranks.at(b)) / kRankWidth;
  count(std::exp(-0.5 * ranksApart * ranksApart));
  double n = static_cast<double>(space.axes.size() + 1), pairs = n * (n - 1) / 2;
  return kAlone * sum / n + kPairs * (sum * sum - squares) / 2 / pairs + kTogether * product;
}

Surrogate::Surrogate(const Space &space, const std::map<Point, double> &ranks,
                     const std::map<Point, std::optional<double>> &seen)
    : space(space), ranks(ranks) {
  std::vector<std::pair<double, Point>> timed;
  double slowest = 0;
  for (const auto &[point, time] : seen)
    if (time)
      slowest = std::max(slowest, std::log(*time));
  for (const auto &[point, time] : seen)
    timed.push_back({time ? std::log(*time) : slowest, point});
  std::stable_sort(timed.begin(), timed.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  timed.resize(std::min(timed.size(), kMostKnown));
  size_t n = timed.size();
  double mean = 0, variance = 0;
  for (const auto &[time, point] : timed)
    mean += time / static_cast<double>(n);
  for (const auto &[time, point] : timed)
    variance += (time - mean) * (time - mean) / static_cast<double>(n);
  double deviation = std::max(std::sqrt(variance), 1e-6);
  factor.assign(n * n, 0);
  for (size_t i = 0; i < n; ++i) {
    known.push_back(timed[i].second);
    weights.push_back((timed[i].first - mean) / deviation);
    for (size_t j = 0; j <= i; ++j) {
      double value = likeness(known[i], known[j]) + (i == j ? kNoise : 0);
      for (size_t k = 0; k < j; ++k)
        value -= factor[i * n + k] * factor[j * n + k];
      factor[i * n + j] = i == j ? std::sqrt(std::max(value, 1e-9)) : value / factor[j * n + j];
    }
  }
  for (size_t i = 0; i < n; ++i) { // L z = y
    for (size_t k = 0; k < i; ++k)
      weights[i] -= factor[i * n + k] * weights[k];
    weights[i] /= factor[i * n + i];
  }
  for (size_t i = n; i-- > 0;) { // L' w = z
    for (size_t k = i + 1; k < n; ++k)
      weights[i] -= factor[k * n + i] * weights[k];
    weights[i] /= factor[i * n + i];
  }
}

double Surrogate::promise(const Point &point) const {
  size_t n = known.size();
  std::vector<double> solved(n);
  double mean = 0, explained = 0;
  for (size_t i = 0; i < n; ++i) {
    double alike = likeness(point, known[i]);
    mean += alike * weights[i];
    for (size_t k = 0; k < i; ++k)
      alike -= factor[i * n + k] * solved[k];
    solved[i] = alike / factor[i * n + i];
    explained += solved[i] * solved[i];
  }
  return mean - kCuriosity * std::sqrt(std::max(0.0, 1 - explained));
}

} // namespace fagen::lab::tune
