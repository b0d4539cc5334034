// fagen: unit tests: strategies of the tuner on synthetic landscapes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/support/statistics.h"
#include "lab/tune/micro.h"
#include "lab/tune/search.h"
#include "lab/tune/store.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

using namespace fagen::lab;
using namespace fagen::lab::tune;

namespace {

Space makeSpace() {
  Space space;
  space.axes = {{"rows", {"16", "32", "64", "128", "256"}, false},
                {"keys", {"16", "32", "48", "64", "96", "128"}, false},
                {"warps", {"1", "2", "4", "8"}, false},
                {"stages", {"1", "2", "3"}, false},
                {"copy", {"cp_async", "ld_st"}, true},
                {"swizzle", {"xor", "pad", "none"}, true},
                {"q_in", {"shared", "registers"}, true}};
  Point point(space.axes.size(), 0);
  while (true) {
    int slabs = space.number(point, "rows") / 16, warps = space.number(point, "warps");
    bool fits = space.number(point, "rows") * space.number(point, "keys") <= 128 * 128 && slabs % warps == 0;
    if (fits) {
      space.points.push_back(point);
      space.estimates[point] = {128, 2, 32768};
    }
    size_t digit = point.size();
    while (digit && ++point[digit - 1] == static_cast<int>(space.axes[digit - 1].values.size()))
      point[--digit] = 0;
    if (!digit)
      return space;
  }
}

/// What a model could know of it: work by tiles and steps, and what a step costs next to its products.
double roughCost(const Space &space, const Point &point) {
  const double rows = space.number(point, "rows"), keys = space.number(point, "keys");
  const double step = rows * keys * 0.1 / std::min(4, space.number(point, "warps")) +
                      (space.number(point, "stages") > 1 ? 200 : 300) +
                      keys * (space.value(point, "copy") == "cp_async" ? 2 : 4);
  return std::ceil(8 * 512 / rows / 132) * 512 / keys * step * (space.value(point, "swizzle") == "none" ? 1.6 : 1);
}

/// Optima that depend on other axes, ridges, and candidates that fail; unlike the rough cost.
Measured landscape(const Space &space, const Point &point) {
  double rows = std::log2(space.number(point, "rows")), keys = std::log2(space.number(point, "keys"));
  double warps = std::log2(space.number(point, "warps")), stages = space.number(point, "stages");
  bool registers = space.value(point, "q_in") == "registers", async = space.value(point, "copy") == "cp_async";
  double bestKeys = registers ? 5 : 6, bestStages = async ? 3 : 1;
  double time = 100 + 14 * std::pow(rows - 6.6, 2) + 9 * std::pow(keys - bestKeys, 2) +
                11 * std::pow(rows - warps - 5, 2) + 6 * std::abs(stages - bestStages) + (async ? 0 : 25) +
                (registers ? 0 : 7) + (space.value(point, "swizzle") == "xor" ? 0 : 18);
  // Local roughness that is the same in every run.
  size_t hash = 17;
  for (int value : point)
    hash = hash * 31 + static_cast<size_t>(value);
  time *= 1 + 0.02 * static_cast<double>(hash * 2654435761u % 1000) / 1000;
  if (rows + keys > 13.5 && registers)
    return std::nullopt; // spills
  return time;
}

struct Walk {
  std::vector<Point> asked;
  double best = INFINITY;
};

Walk walk(const Space &space, const std::vector<Point> &ranked, const SearchOptions &options) {
  Walk result;
  search(space, ranked, options, [&](const std::vector<Point> &points, int) {
    std::vector<Measured> answers;
    for (const Point &point : points) {
      result.asked.push_back(point);
      answers.push_back(landscape(space, point));
      if (answers.back())
        result.best = std::min(result.best, *answers.back());
    }
    return answers;
  });
  return result;
}

SearchOptions optionsOf(const std::string &strategy, uint64_t seed, size_t evaluations) {
  SearchOptions options;
  options.strategy = strategy;
  options.seed = seed;
  options.evaluations = evaluations;
  return options;
}

double optimum(const Space &space) {
  double best = INFINITY;
  for (const Point &point : space.points)
    if (Measured time = landscape(space, point))
      best = std::min(best, *time);
  return best;
}

/// Median over 20 seeds of optimum / best found, after a share of the space's evaluations.
double medianQuality(const Space &space, const std::string &strategy, size_t evaluations) {
  std::vector<Point> ranked = space.points;
  std::stable_sort(ranked.begin(), ranked.end(),
                   [&](const Point &a, const Point &b) { return roughCost(space, a) < roughCost(space, b); });
  std::vector<double> qualities;
  for (uint64_t seed = 1; seed <= 20; ++seed)
    qualities.push_back(optimum(space) / walk(space, ranked, optionsOf(strategy, seed, evaluations)).best);
  return median(qualities);
}

} // namespace

TEST(TuneSearch, EvolutionFindsNearlyTheOptimumWithATwentieth) {
  Space space = makeSpace();
  EXPECT_GE(medianQuality(space, "evolutionary", space.points.size() / 20), 0.97);
}

TEST(TuneSearch, StrategiesOnAFewEvaluations) {
  Space space = makeSpace();
  double evolution = medianQuality(space, "evolutionary", 60), random = medianQuality(space, "random", 60),
         climb = medianQuality(space, "hillclimb", 60);
  RecordProperty("evolutionary", std::to_string(evolution));
  RecordProperty("random", std::to_string(random));
  RecordProperty("hillclimb", std::to_string(climb));
  EXPECT_GT(evolution, random);
}

TEST(TuneSearch, NothingIsAskedTwiceAndEverythingIsReached) {
  Space space = makeSpace();
  for (const std::string &strategy : strategyNames()) {
    Walk all = walk(space, space.points, optionsOf(strategy, 3, 0));
    EXPECT_THAT(all.asked, testing::UnorderedElementsAreArray(space.points)) << strategy;
  }
}

TEST(TuneSearch, TheSameSeedAsksTheSame) {
  Space space = makeSpace();
  for (const std::string &strategy : strategyNames()) {
    Walk once = walk(space, space.points, optionsOf(strategy, 5, 80)),
         again = walk(space, space.points, optionsOf(strategy, 5, 80));
    EXPECT_EQ(once.asked, again.asked) << strategy;
    EXPECT_EQ(once.asked.size(), 80u);
  }
}

TEST(TuneSearch, EvolutionBeginsWithWhatIsShipped) {
  Space space = makeSpace();
  std::swap(space.points[0], space.points[50]);
  EXPECT_EQ(walk(space, space.points, optionsOf("evolutionary", 1, 8)).asked.front(), space.points.front());
}

TEST(TuneMicro, StepsOfTheTileAreStepsOfTheProblem) {
  Case problem;
  problem.shape = {2, 16, 4, 4096, 8192, 64, 64};
  MicroProblem micro = microProblem(problem, 132);
  EXPECT_EQ(micro.shorter.shape, (Shape{1, 264, 1, 256, 256, 64, 64}));
  EXPECT_EQ(micro.longer.shape.seqKv, 768);
  EXPECT_NEAR(micro.times, 512.0 / 264, 1e-12); // 2 * 16 heads of 16 times 256 rows
  // 10 us and 1 us for 64 keys.
  EXPECT_NEAR(predictFromMicro(micro, problem, 14, 22), 512.0 / 264 * (10 + 128), 1e-9);
  // A longer tile that is not slower: steps cost nothing.
  EXPECT_NEAR(predictFromMicro(micro, problem, 14, 13), 512.0 / 264 * 14, 1e-9);
}

TEST(TuneMicro, SmallProblemsAndCausalOnes) {
  Case problem;
  problem.mask = Mask::Causal;
  problem.shape = {1, 8, 8, 100, 4096, 64, 64};
  MicroProblem micro = microProblem(problem, 132);
  EXPECT_EQ(micro.shorter.shape, (Shape{1, 8, 1, 100, 256, 64, 64}));
  EXPECT_EQ(micro.times, 1);
  // Rows see 4096 - 50 keys on average; the tiles' rows 256 - 50 and 768 - 50: 5 us and 1 us a key.
  EXPECT_NEAR(predictFromMicro(micro, problem, 5 + 206, 5 + 718), 5 + 4046, 1e-9);
}

TEST(TuneStore, WhatIsWrittenIsReadAgain) {
  std::string file = testing::TempDir() + "tune-store.db";
  for (const char *suffix : {"", "-wal", "-shm"})
    std::filesystem::remove(file + suffix);
  StudyKey key{"gpu", "driver", "compiler", "spec", "problem"}, other = key;
  other.driver = "newer";
  {
    Store store(file);
    long study = store.open(key);
    Record record{"a", "{}", "", "", "", {}, 0, 0, 4, 0, "random"};
    store.begin(study, record);
    store.begin(study, record);
    record.outcome = "ok";
    record.samples = {1.5, 2.5};
    record.median = 2;
    store.finish(study, record);
    record.candidate = "b";
    store.begin(study, record);
    record.candidate = "c";
    store.begin(study, record);
    store.abandon(study, "c");
    store.abandon(study, "a"); // ended: it stays
  }
  Store store(file);
  EXPECT_NE(store.open(key), store.open(other));
  EXPECT_TRUE(store.records(store.open(other)).empty());
  auto records = store.records(store.open(key));
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records["a"].outcome, "ok");
  EXPECT_EQ(records["a"].attempts, 2);
  EXPECT_EQ(records["a"].generation, 4);
  EXPECT_THAT(records["a"].samples, testing::ElementsAre(1.5, 2.5));
  EXPECT_EQ(records["b"].outcome, "running");
}
