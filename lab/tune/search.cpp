// fagen: how a tuner walks its space.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "search.h"
#include "lab/cases/problem.h"
#include "lab/support/random.h"
#include "surrogate.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace fagen::lab::tune {

static constexpr size_t kFirstGeneration = 8; ///< at least
static constexpr int kStrangers = 3;          ///< every so many generations
static constexpr int kTries = 40;             ///< to find a child that is new
/// For a generation, of which the surrogate picks: children of elites, and points from anywhere.
static constexpr size_t kBred = 40, kWild = 40;
static constexpr double kMacro = 0.25, kCross = 0.25, kSecondStep = 0.25, kOtherStructure = 0.4, kNear = 1.2;

const std::vector<std::string> &strategyNames() {
  static const std::vector<std::string> names = {"evolutionary", "random", "hillclimb", "exhaustive"};
  return names;
}

void requireStrategy(const std::string &name) {
  const auto &names = strategyNames();
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw UserError(fmt::format("unknown strategy '{}'; known: {}", name, fmt::join(names, ", ")));
}

namespace {

/// Random numbers by counter: the same on every machine.
class Dice {
public:
  explicit Dice(uint64_t seed) : seed(seed) {}
  size_t below(size_t count) { return static_cast<size_t>(word() % count); }
  bool chance(double probability) { return word() < probability * 4294967296.0; }

private:
  uint64_t word() { return philox({static_cast<uint32_t>(count++), 0x7475, 0, 0}, seed)[0]; }
  uint64_t seed, count = 0;
};

struct Scored {
  Point point;
  double microseconds;
};

class Search {
public:
  Search(const Space &space, const std::vector<Point> &ranked, const SearchOptions &options, const Evaluate &evaluate)
      : space(space), ranked(ranked), valid(ranked.begin(), ranked.end()), evaluate(evaluate), dice(options.seed),
        options(options), left(options.evaluations ? std::min(options.evaluations, ranked.size()) : ranked.size()) {
    for (size_t i = 0; i < ranked.size(); ++i)
      rankOf[ranked[i]] = static_cast<double>(i) / static_cast<double>(ranked.size());
  }

  void exhaustive() {
    for (size_t begin = 0; begin < ranked.size() && left; begin += options.generation)
      if (!ask({ranked.begin() + static_cast<long>(begin),
                ranked.begin() + static_cast<long>(std::min(begin + options.generation, ranked.size()))}))
        return;
  }

  void random() {
    while (left) {
      std::vector<Point> points;
      while (points.size() < std::min(left, options.generation))
        if (auto point = unseen(points))
          points.push_back(*point);
        else
          break;
      if (points.empty() || !ask(points))
        return;
    }
  }

  /// From a random point to its best neighbour until none is better; then from another one.
  void hillClimb() {
    while (left) {
      auto start = unseen({});
      if (!start || !ask({*start}))
        return;
      for (Point here = *start;;) {
        std::vector<Point> around;
        for (const Point &next : neighbours(here))
          if (!seen.count(next))
            around.push_back(next);
        if (!around.empty() && !ask(around))
          return;
        Point best = bestOf(neighbours(here), here);
        if (best == here || !left)
          break;
        here = best;
      }
    }
  }

  void evolution() {
    if (!ask(firstGeneration()))
      return;
    while (left) {
      std::vector<Point> children = nextGeneration(std::min(left, options.generation));
      if (children.empty() || !ask(children))
        return;
    }
  }

private:
  /// What is shipped, the most promising, and the most promising of structures that these do not have.
  std::vector<Point> firstGeneration() const {
    std::vector<Point> first = {space.points.front()};
    size_t size = std::max(kFirstGeneration, options.generation), promising = size / 2;
    std::vector<size_t> axes = axesThatAre(true);
    auto isAlike = [&](const Point &a, const Point &b) {
      return std::all_of(axes.begin(), axes.end(), [&](size_t axis) { return a[axis] == b[axis]; });
    };
    for (bool fresh : {false, true})
      for (const Point &point : ranked) {
        bool known = std::find(first.begin(), first.end(), point) != first.end();
        bool alike = std::any_of(first.begin(), first.end(), [&](const Point &other) { return isAlike(other, point); });
        if (!known && !(fresh && alike) && first.size() < (fresh ? size : promising))
          first.push_back(point);
      }
    return first;
  }

  /// Many are bred; those are evaluated of which what is known promises most.
  std::vector<Point> nextGeneration(size_t count) {
    std::vector<Point> brood, chosen;
    // Now and then one comes from anywhere: what no elite is near to is not lost.
    if (generation % kStrangers == 0)
      if (auto stranger = unseen(chosen))
        chosen.push_back(*stranger);
    while (brood.size() < kBred) {
      auto child = breed(brood);
      if (!child)
        break;
      brood.push_back(*child);
    }
    std::vector<const Point *> open = unseenPoints({});
    for (size_t i = 0; i < kWild && !open.empty(); ++i)
      if (const Point &any = *open[dice.below(open.size())]; std::count(brood.begin(), brood.end(), any) == 0)
        brood.push_back(any);
    std::erase_if(brood, [&](const Point &child) { return std::count(chosen.begin(), chosen.end(), child) > 0; });
    Surrogate surrogate(space, rankOf, seen);
    std::vector<std::pair<double, Point>> promising;
    for (const Point &child : brood)
      promising.push_back({surrogate.promise(child), child});
    std::stable_sort(promising.begin(), promising.end(),
                     [](const auto &a, const auto &b) { return a.first < b.first; });
    for (size_t i = 0; i < promising.size() && chosen.size() < count; ++i)
      chosen.push_back(promising[i].second);
    return chosen;
  }

  /// The better elites have more children. Some are of another structure's best when that is near: a structure is
  /// judged by numbers that suit it, not by those it was first tried with.
  const Point &parent() {
    std::vector<const Point *> near;
    for (const auto &[structure, champion] : champions)
      if (champion.microseconds < elites.front().microseconds * kNear)
        near.push_back(&champion.point);
    if (dice.chance(kOtherStructure))
      return *near[dice.below(near.size())];
    return elites[std::min(dice.below(elites.size()), dice.below(elites.size()))].point;
  }

  void remember(const Scored &scored) {
    elites.push_back(scored);
    Point structure;
    for (size_t axis : axesThatAre(true))
      structure.push_back(scored.point[axis]);
    auto [champion, isFirst] = champions.try_emplace(structure, scored);
    if (!isFirst && scored.microseconds < champion->second.microseconds)
      champion->second = scored;
  }

  bool isNew(const Point &point, const std::vector<Point> &pending) const {
    return valid.count(point) && !seen.count(point) &&
           std::find(pending.begin(), pending.end(), point) == pending.end();
  }

  /// False when the search is to end.
  bool ask(std::vector<Point> points) {
    points.resize(std::min(points.size(), left));
    std::vector<Measured> answers = evaluate(points, generation++);
    for (size_t i = 0; i < answers.size(); ++i) {
      seen[points[i]] = answers[i];
      if (answers[i])
        remember({points[i], *answers[i]});
    }
    std::stable_sort(elites.begin(), elites.end(),
                     [](const Scored &a, const Scored &b) { return a.microseconds < b.microseconds; });
    elites.resize(std::min<size_t>(elites.size(), kElites));
    left -= answers.size();
    return answers.size() == points.size() && left > 0;
  }

  std::vector<const Point *> unseenPoints(const std::vector<Point> &pending) const {
    std::vector<const Point *> open;
    for (const Point &point : ranked)
      if (isNew(point, pending))
        open.push_back(&point);
    return open;
  }

  std::optional<Point> unseen(const std::vector<Point> &pending) {
    std::vector<const Point *> open = unseenPoints(pending);
    if (open.empty())
      return std::nullopt;
    return *open[dice.below(open.size())];
  }

  /// Steps of one: to any other value of a structural axis, to the next one of a numeric axis.
  std::vector<Point> neighbours(const Point &point) const {
    std::vector<Point> around;
    for (size_t axis = 0; axis < space.axes.size(); ++axis)
      for (int value = 0; value < static_cast<int>(space.axes[axis].values.size()); ++value) {
        Point next = point;
        next[axis] = value;
        bool near = space.axes[axis].structural || std::abs(value - point[axis]) == 1;
        if (value != point[axis] && near && valid.count(next))
          around.push_back(next);
      }
    return around;
  }

  Point bestOf(const std::vector<Point> &points, const Point &start) const {
    Point best = start;
    auto time = [&](const Point &point) {
      auto found = seen.find(point);
      return found == seen.end() ? Measured() : found->second;
    };
    for (const Point &point : points)
      if (time(point) && (!time(best) || *time(point) < *time(best)))
        best = point;
    return best;
  }

  /// The macro layer takes another structure, by chance or from another elite, and keeps the numbers; the micro layer
  /// keeps the structure and takes a step or two on the numbers.
  std::optional<Point> breed(const std::vector<Point> &pending) {
    if (elites.empty())
      return std::nullopt;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      Point child = parent();
      if (dice.chance(kMacro))
        changeStructure(child);
      else if (dice.chance(kCross))
        cross(child, elites[dice.below(elites.size())].point);
      else
        changeNumbers(child);
      if (isNew(child, pending))
        return child;
    }
    return std::nullopt;
  }

  void changeStructure(Point &child) {
    const Point &other = elites[dice.below(elites.size())].point;
    bool cross = dice.chance(0.3);
    std::vector<size_t> axes = axesThatAre(true);
    if (cross)
      for (size_t axis : axes)
        child[axis] = other[axis];
    else if (!axes.empty())
      shift(child, axes[dice.below(axes.size())]);
    if (cross || dice.chance(kSecondStep))
      changeNumbers(child);
  }

  /// Each number from one of both: what two elites found apart comes together.
  void cross(Point &child, const Point &other) {
    for (size_t axis : axesThatAre(false))
      if (dice.chance(0.5))
        child[axis] = other[axis];
  }

  void changeNumbers(Point &child) {
    std::vector<size_t> axes = axesThatAre(false);
    if (axes.empty())
      return;
    do
      shift(child, axes[dice.below(axes.size())]);
    while (dice.chance(kSecondStep));
  }

  void shift(Point &child, size_t axis) {
    int count = static_cast<int>(space.axes[axis].values.size());
    if (count < 2)
      return;
    if (space.axes[axis].structural) {
      child[axis] = (child[axis] + 1 + static_cast<int>(dice.below(static_cast<size_t>(count - 1)))) % count;
      return;
    }
    child[axis] = std::clamp(child[axis] + (dice.chance(0.5) ? 1 : -1), 0, count - 1);
  }

  std::vector<size_t> axesThatAre(bool structural) const {
    std::vector<size_t> axes;
    for (size_t axis = 0; axis < space.axes.size(); ++axis)
      if (space.axes[axis].structural == structural && space.axes[axis].values.size() > 1)
        axes.push_back(axis);
    return axes;
  }

  const Space &space;
  const std::vector<Point> &ranked;
  std::set<Point> valid;
  const Evaluate &evaluate;
  Dice dice;
  const SearchOptions &options;
  size_t left;
  std::map<Point, double> rankOf; ///< 0 to 1 in the model's order
  int generation = 0;
  std::map<Point, Measured> seen;
  std::vector<Scored> elites;
  std::map<Point, Scored> champions; ///< of each structure
};

} // namespace

void search(const Space &space, const std::vector<Point> &ranked, const SearchOptions &options,
            const Evaluate &evaluate) {
  if (ranked.empty())
    return;
  Search walk(space, ranked, options, evaluate);
  if (options.strategy == "random")
    walk.random();
  else if (options.strategy == "hillclimb")
    walk.hillClimb();
  else if (options.strategy == "exhaustive")
    walk.exhaustive();
  else
    walk.evolution();
}

} // namespace fagen::lab::tune
