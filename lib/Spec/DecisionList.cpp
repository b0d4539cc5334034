// fagen: thresholds that minimise the worst regret.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For each figure, problems are sorted by it; equal values fall together. best[p][j] is the least (worst, sum) of
// regrets of the first j groups in p parts, over the choice of the last part and where it begins.

#include "DecisionList.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

namespace fagen {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Score {
  double worst = 0, sum = 0;
  bool operator<(const Score &other) const { return worst != other.worst ? worst < other.worst : sum < other.sum; }
};

/// A part of the list: groups begin to end.
struct Cell {
  Score score{kInfinity, kInfinity};
  size_t begin = 0, choice = 0;
};

class FigureSearch {
public:
  FigureSearch(const RegretTable &table, size_t figure, size_t mostParts) : table(table), figure(figure) {
    for (size_t problem = 0; problem < table.figures[figure].size(); ++problem)
      groups[table.figures[figure][problem]].push_back(problem);
    for (const auto &[value, problems] : groups)
      values.push_back(value);
    best.assign(mostParts + 1, std::vector<Cell>(values.size() + 1));
    best[0][0].score = {};
    for (size_t parts = 1; parts <= mostParts; ++parts)
      for (size_t end = 1; end <= values.size(); ++end)
        for (size_t begin = parts - 1; begin < end; ++begin)
          extend(parts, begin, end);
  }

  double worst(size_t parts) const { return best[parts].back().score.worst; }
  Score score(size_t parts) const { return best[parts].back().score; }

  DecisionList list(size_t parts) const {
    DecisionList result{figure, {}, worst(parts)};
    for (size_t end = values.size(); parts > 0; --parts) {
      const Cell &cell = best[parts][end];
      DecisionPart part{cell.choice, limitBehind(end), {}};
      for (size_t group = cell.begin; group < end; ++group)
        for (size_t problem : groups.at(values[group]))
          part.problems.push_back(problem);
      result.parts.insert(result.parts.begin(), part);
      end = cell.begin;
    }
    return result;
  }

private:
  /// Halfway, in proportion, to the next group.
  int64_t limitBehind(size_t end) const {
    if (end == values.size())
      return std::numeric_limits<int64_t>::max();
    double between = std::sqrt(static_cast<double>(values[end - 1]) * static_cast<double>(values[end]));
    return std::clamp(static_cast<int64_t>(between), values[end - 1], values[end] - 1);
  }

  void extend(size_t parts, size_t begin, size_t end) {
    const Score &before = best[parts - 1][begin].score;
    if (before.worst == kInfinity)
      return;
    for (size_t choice = 0; choice < table.regret.size(); ++choice) {
      Score score = before;
      for (size_t group = begin; group < end; ++group)
        for (size_t problem : groups[values[group]]) {
          score.worst = std::max(score.worst, table.regret[choice][problem]);
          score.sum += table.regret[choice][problem];
        }
      if (score < best[parts][end].score)
        best[parts][end] = {score, begin, choice};
    }
  }

  const RegretTable &table;
  size_t figure;
  std::map<int64_t, std::vector<size_t>> groups;
  std::vector<int64_t> values;
  std::vector<std::vector<Cell>> best;
};

} // namespace

DecisionList decide(const RegretTable &table, size_t mostParts, double gain) {
  std::optional<DecisionList> chosen;
  for (size_t parts = 1; parts <= mostParts; ++parts) {
    std::optional<DecisionList> here;
    Score least{kInfinity, kInfinity};
    for (size_t figure = 0; figure < table.figures.size(); ++figure) {
      FigureSearch search(table, figure, parts);
      if (search.score(parts) < least) {
        least = search.score(parts);
        here = search.list(parts);
      }
    }
    if (here && (!chosen || here->worst < chosen->worst - gain))
      chosen = here;
  }
  return chosen.value_or(DecisionList{});
}

} // namespace fagen
