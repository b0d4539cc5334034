// fagen: the order in which models expect candidates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rank.h"
#include "model.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace fagen::lab::tune {

/// Planning takes some seven milliseconds a point on one core.
static constexpr size_t kPlanned = 512;
/// Sets of numbers of which every structure is planned.
static constexpr size_t kBestNumbers = 24;
/// The compiler's time model knows neither spills nor bank conflicts.
static constexpr double kSpilled = 1.3, kConflicts = 1.6;

namespace {

class Ranking {
public:
  Ranking(const Space &space, const Case &problem, int sms) : space(space), problem(problem), sms(sms) {}

  /// What the compiler has not timed stands behind what it has, by the cheap model. Among equals what is more like the
  /// shipped point is first.
  std::vector<Point> order() const {
    std::vector<std::tuple<bool, double, size_t, const Point *>> costs;
    for (const Point &point : space.points) {
      double predicted = predictedOf(point);
      double cost = predicted ? predicted : modelCost(space, point, problem.shape, problem.mask, sms);
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
    for (const Point &point : ranked)
      if (Point part = partOf(point, false); std::find(numbers.begin(), numbers.end(), part) == numbers.end())
        numbers.push_back(part);
    numbers.resize(std::min(numbers.size(), kBestNumbers));
    for (const Point &point : ranked)
      if (std::find(numbers.begin(), numbers.end(), partOf(point, false)) != numbers.end())
        points.push_back(point);
    return points;
  }

private:
  double predictedOf(const Point &point) const {
    const Estimate &estimate = space.estimates.at(point);
    return estimate.microseconds * (estimate.fillsRegisters() ? kSpilled : 1) *
           (space.value(point, "swizzle") == "none" ? kConflicts : 1);
  }

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

  const Space &space;
  const Case &problem;
  int sms;
};

} // namespace

std::vector<Point> rankPoints(const Compiler &compiler, const BaseKernel &base, Space &space, const Case &problem,
                              uint32_t sm, int sms, const std::filesystem::path &scratch) {
  Ranking ranking(space, problem, sms);
  // With warp groups a plan proves what roles wait for, and says of registers and CTAs only what the roles fix.
  if (base.mma == "wgmma")
    return ranking.order();
  for (auto choose : {&Ranking::oneOfEachNumbers, &Ranking::structuresOfTheBest}) {
    std::vector<Point> points = (ranking.*choose)();
    points.resize(std::min(points.size(), kPlanned));
    compiler.plan(base, space, points, problem.shape, sm, scratch);
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
