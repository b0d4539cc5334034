// fagen: the order in which the compiler expects candidates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rank.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <tuple>

namespace fagen::lab::tune {

/// Points of a round: a core lowers about 1000 a second.
static constexpr size_t kPlanned = 2048;
/// So many the compiler is asked for at a time.
static constexpr size_t kAtOnce = 256;
/// Sets of numbers of which every structure is planned; one of those whose times differ by less than that stands for
/// all.
static constexpr size_t kBestNumbers = 24;
static constexpr double kAlike = 0.002;

namespace {

class Ranking {
public:
  explicit Ranking(const Space &space) : space(space) {}

  /// What the compiler has not timed stands after what it has, in the order of what is nearest to it. Among equals
  /// what is more like the shipped point is first.
  std::vector<Point> order() const {
    const std::map<Point, double> known = leastOfNumbers();
    std::map<Point, double> nearest;
    std::vector<std::tuple<bool, double, size_t, const Point *>> costs;
    for (const Point &point : space.points) {
      const double predicted = space.estimates.at(point).microseconds;
      double cost = predicted;
      if (predicted == 0) {
        const Point numbers = partOf(point, false);
        if (auto [place, isNew] = nearest.try_emplace(numbers, 0); isNew)
          place->second = ofNearest(known, numbers);
        cost = nearest[numbers];
      }
      costs.emplace_back(predicted == 0, cost, changesOf(point), &point);
    }
    std::sort(costs.begin(), costs.end()); // at last by the place in the space
    std::vector<Point> ranked;
    for (const auto &cost : costs)
      ranked.push_back(*std::get<const Point *>(cost));
    return ranked;
  }

  /// Of each set of numbers the point whose structure is most like the shipped one.
  std::vector<Point> oneOfEachNumbers() const {
    std::map<Point, Point> chosen;
    std::vector<Point> ranked = order(), points;
    for (const Point &point : ranked)
      if (auto [place, isFirst] = chosen.try_emplace(partOf(point, false), point);
          !isFirst && changesOf(point) < changesOf(place->second))
        place->second = point;
    for (const Point &point : ranked)
      if (chosen[partOf(point, false)] == point)
        points.push_back(point);
    return points;
  }

  /// Every structure of the numbers that stand first in the order.
  std::vector<Point> structuresOfTheBest() const {
    std::vector<Point> ranked = order(), numbers, points;
    double last = 0;
    for (const Point &point : ranked) {
      const double microseconds = space.estimates.at(point).microseconds;
      if (numbers.size() == kBestNumbers || (microseconds != 0 && microseconds < (1 + kAlike) * last))
        continue;
      numbers.push_back(partOf(point, false));
      last = microseconds;
    }
    for (const Point &point : ranked)
      if (std::find(numbers.begin(), numbers.end(), partOf(point, false)) != numbers.end())
        points.push_back(point);
    return points;
  }

private:
  Point partOf(const Point &point, bool structural) const {
    Point part;
    for (size_t axis = 0; axis < point.size(); ++axis)
      if (space.axes[axis].structural == structural)
        part.push_back(point[axis]);
    return part;
  }

  /// Structural axes on which the point is not as shipped.
  size_t changesOf(const Point &point) const {
    size_t changes = 0;
    for (size_t axis = 0; axis < point.size(); ++axis)
      changes += space.axes[axis].structural && point[axis] != space.points.front()[axis];
    return changes;
  }

  /// Of each set of numbers the least time that the compiler says of a point.
  std::map<Point, double> leastOfNumbers() const {
    std::map<Point, double> least;
    for (const auto &[point, estimate] : space.estimates)
      if (estimate.microseconds != 0) {
        auto [place, isFirst] = least.try_emplace(partOf(point, false), estimate.microseconds);
        place->second = std::min(place->second, estimate.microseconds);
      }
    return least;
  }

  /// The time of the numbers that are most like these: most are the same, then the fewest steps lie between; 0: there
  /// are none.
  static double ofNearest(const std::map<Point, double> &known, const Point &numbers) {
    std::tuple<int, int, double> best = {std::numeric_limits<int>::max(), 0, 0};
    for (const auto &[other, microseconds] : known) {
      int others = 0, steps = 0;
      for (size_t i = 0; i < numbers.size(); ++i) {
        others += numbers[i] != other[i];
        steps += std::abs(numbers[i] - other[i]);
      }
      best = std::min(best, {others, steps, microseconds});
    }
    return std::get<double>(best);
  }

  const Space &space;
};

} // namespace

std::vector<Point> rankPoints(const Compiler &compiler, const BaseKernel &base, Space &space, const Case &problem,
                              uint32_t sm, const std::filesystem::path &scratch, const PlanProgress &progress) {
  Ranking ranking(space);
  for (auto choose : {&Ranking::oneOfEachNumbers, &Ranking::structuresOfTheBest, &Ranking::order}) {
    std::vector<Point> points = (ranking.*choose)();
    std::erase_if(points, [&](const Point &point) { return space.estimates.at(point).microseconds != 0; });
    points.resize(std::min(points.size(), kPlanned));
    for (size_t begin = 0; begin < points.size(); begin += kAtOnce) {
      const auto first = points.begin() + static_cast<std::ptrdiff_t>(begin);
      const auto end = points.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kAtOnce, points.size()));
      if (!compiler.predict(base, space, {first, end}, problem.shape, sm, scratch))
        break; // the model knows neither the family nor the GPU
      progress(begin + static_cast<size_t>(end - first), points.size());
    }
  }
  return ranking.order();
}

size_t leaveOutSlow(const Space &space, std::vector<Point> &ranked) {
  double least = std::numeric_limits<double>::infinity();
  for (const Point &point : ranked)
    if (double microseconds = space.estimates.at(point).microseconds)
      least = std::min(least, microseconds);
  if (space.pruneOver == 0)
    return 0;
  const Point &shipped = space.points.front();
  return std::erase_if(ranked, [&](const Point &point) {
    return point != shipped && space.estimates.at(point).microseconds > space.pruneOver * least;
  });
}

} // namespace fagen::lab::tune
