// fagen: thresholds that minimise the worst regret.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A list's first part takes the problems up to a limit on some figure; the rest of the list is the best one, of a part
// fewer, for the problems that are left. All figures and limits between two problems are tried: there are few problems.

#include "DecisionList.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace fagen {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Score {
  double worst = 0, sum = 0;
  bool operator<(const Score &other) const { return worst != other.worst ? worst < other.worst : sum < other.sum; }
};

struct Scored {
  Score score{kInfinity, kInfinity};
  std::vector<DecisionPart> parts;
};

using Problems = std::vector<size_t>;

class Search {
public:
  explicit Search(const RegretTable &table) : table(table) {}

  Scored best(const Problems &problems, size_t parts) const {
    if (parts == 1)
      return lastPart(problems);
    Scored least;
    for (size_t figure = 0; figure < table.figures.size(); ++figure) {
      std::map<int64_t, Problems> groups; // equal values fall together
      for (size_t problem : problems)
        groups[table.figures[figure][problem]].push_back(problem);
      Problems taken;
      for (auto group = groups.begin(); std::next(group) != groups.end(); ++group) {
        taken.insert(taken.end(), group->second.begin(), group->second.end());
        Scored list = splitAt(problems, taken, parts);
        if (!(list.score < least.score))
          continue;
        list.parts.front().figure = figure;
        list.parts.front().limit = between(group->first, std::next(group)->first);
        least = std::move(list);
      }
    }
    return least;
  }

private:
  /// Halfway, in proportion.
  static int64_t between(int64_t below, int64_t above) {
    double middle = std::sqrt(static_cast<double>(below) * static_cast<double>(above));
    return std::clamp(static_cast<int64_t>(middle), below, above - 1);
  }

  Scored lastPart(const Problems &problems) const {
    Scored least;
    for (size_t choice = 0; choice < table.regret.size(); ++choice) {
      Score score;
      for (size_t problem : problems) {
        score.worst = std::max(score.worst, table.regret[choice][problem]);
        score.sum += table.regret[choice][problem];
      }
      if (score < least.score)
        least = {score, {{choice, 0, std::numeric_limits<int64_t>::max(), problems}}};
    }
    return least;
  }

  Scored splitAt(const Problems &problems, const Problems &taken, size_t parts) const {
    Problems left;
    for (size_t problem : problems)
      if (std::find(taken.begin(), taken.end(), problem) == taken.end())
        left.push_back(problem);
    Scored list = lastPart(taken), rest = best(left, parts - 1);
    if (list.parts.empty() || rest.parts.empty())
      return {};
    list.score = {std::max(list.score.worst, rest.score.worst), list.score.sum + rest.score.sum};
    list.parts.insert(list.parts.end(), rest.parts.begin(), rest.parts.end());
    return list;
  }

  const RegretTable &table;
};

} // namespace

DecisionList decide(const RegretTable &table, size_t mostParts, double gain) {
  Problems all;
  for (size_t problem = 0; !table.regret.empty() && problem < table.regret.front().size(); ++problem)
    all.push_back(problem);
  DecisionList chosen;
  if (all.empty())
    return chosen;
  for (size_t parts = 1; parts <= mostParts; ++parts)
    if (Scored list = Search(table).best(all, parts);
        !list.parts.empty() && (chosen.parts.empty() || list.score.worst < chosen.worst - gain))
      chosen = {list.parts, list.score.worst};
  return chosen;
}

} // namespace fagen
