// fagen: strategies walked over a recorded landscape.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "replay.h"
#include "lab/support/json_file.h"
#include "lab/support/statistics.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace fagen::lab::tune {

double Landscape::optimum() const {
  double best = INFINITY;
  for (const auto &[point, time] : times)
    if (time)
      best = std::min(best, *time);
  return best;
}

static bool fits(const Space &space, const Point &point) {
  bool isIn = point.size() == space.axes.size();
  for (size_t i = 0; isIn && i < point.size(); ++i)
    isIn = point[i] >= 0 && point[i] < static_cast<int>(space.axes[i].values.size());
  return isIn;
}

static Landscape readLandscape(const Json &study) {
  Landscape landscape;
  landscape.problem = study.at("problem");
  for (const Json &axis : study.at("axes"))
    landscape.space.axes.push_back(
        {axis.at("name"), axis.at("values").get<std::vector<std::string>>(), axis.at("structural")});
  for (const Json &entry : study.at("points")) {
    Point point = entry.at("at");
    if (!fits(landscape.space, point))
      throw UserError("a point is none of its axes");
    const Measured time = entry.at("us").is_null() ? Measured() : Measured(entry.at("us").get<double>());
    if (time && !(*time > 0))
      throw UserError(fmt::format("a point took {:g} us", *time));
    if (!landscape.times.emplace(point, time).second)
      throw UserError("a point is there twice");
    landscape.ranked.push_back(point);
  }
  landscape.space.points = {study.at("shipped").get<Point>()};
  if (!landscape.times.count(landscape.space.points.front()))
    throw UserError("the shipped point is not among the points");
  for (const Point &point : landscape.ranked)
    if (point != landscape.space.points.front())
      landscape.space.points.push_back(point);
  if (!std::isfinite(landscape.optimum()))
    throw UserError(fmt::format("nothing was timed of {}", landscape.problem));
  return landscape;
}

std::vector<Landscape> readLandscapes(const std::filesystem::path &file) {
  return readJsonFile(file.string(), "a landscape of tune --landscape", [](const Json &record) {
    std::vector<Landscape> landscapes;
    for (const Json &study : record.at("studies"))
      landscapes.push_back(readLandscape(study));
    if (landscapes.empty())
      throw UserError("it has no study");
    return landscapes;
  });
}

/// One seed of one strategy.
static void walk(const Landscape &landscape, const std::string &strategy, uint64_t seed, const ReplayOptions &options,
                 ReplayResult &result) {
  size_t points = landscape.ranked.size(), quarter = std::max<size_t>(1, points / 4), asked = 0, needed = points;
  double best = INFINITY, optimum = landscape.optimum(), afterQuarter = 0;
  bool reached = false;
  SearchOptions search;
  search.strategy = strategy;
  search.seed = seed;
  search.generation = options.generation;
  tune::search(landscape.space, landscape.ranked, search, [&](const std::vector<Point> &generation, int) {
    std::vector<Measured> answers;
    for (const Point &point : generation) {
      if (reached && asked >= quarter)
        break; // nothing more is to be learned
      answers.push_back(landscape.times.at(point));
      best = std::min(best, answers.back().value_or(INFINITY));
      ++asked;
      if (!reached && optimum / best >= options.goal) {
        reached = true;
        needed = asked;
      }
      if (asked == quarter)
        afterQuarter = optimum / best;
    }
    return answers;
  });
  result.needed.push_back(static_cast<double>(needed));
  result.afterQuarter.push_back(afterQuarter);
}

std::vector<ReplayResult> replay(const std::vector<Landscape> &landscapes, const ReplayOptions &options) {
  std::vector<std::string> strategies = options.strategies;
  if (strategies.empty())
    for (const std::string &name : strategyNames())
      if (name != "exhaustive")
        strategies.push_back(name);
  std::vector<ReplayResult> results;
  for (const Landscape &landscape : landscapes)
    for (const std::string &strategy : strategies) {
      ReplayResult result{landscape.problem, strategy, landscape.ranked.size(), {}, {}};
      for (int seed = 1; seed <= options.seeds; ++seed)
        walk(landscape, strategy, static_cast<uint64_t>(seed), options, result);
      results.push_back(std::move(result));
    }
  return results;
}

std::string replayTable(const std::vector<ReplayResult> &results, const ReplayOptions &options) {
  TextTable table({{"problem"},
                   {"strategy"},
                   {"space", true},
                   {fmt::format("to {:g} %: median", options.goal * 100), true},
                   {"p90", true},
                   {"worst", true},
                   {"of the space", true},
                   {"after a quarter", true}});
  for (const ReplayResult &result : results)
    table.add({result.problem, result.strategy, std::to_string(result.points),
               fmt::format("{:.0f}", median(result.needed)), fmt::format("{:.0f}", percentile(result.needed, 0.9)),
               fmt::format("{:.0f}", percentile(result.needed, 1)),
               fmt::format("{:.1f} %", 100 * median(result.needed) / static_cast<double>(result.points)),
               fmt::format("{:.1f} %", 100 * median(result.afterQuarter))});
  return table.text();
}

Json replayJson(const std::vector<ReplayResult> &results, const ReplayOptions &options) {
  Json json{{"goal", options.goal}, {"seeds", options.seeds}, {"results", Json::array()}};
  for (const ReplayResult &result : results)
    json["results"].push_back({{"problem", result.problem},
                               {"strategy", result.strategy},
                               {"points", result.points},
                               {"median", median(result.needed)},
                               {"evaluations", result.needed},
                               {"after_quarter", result.afterQuarter}});
  return json;
}

} // namespace fagen::lab::tune
