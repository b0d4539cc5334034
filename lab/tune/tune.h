// fagen: searches the best schedule of each problem, within a budget of time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler.h"
#include "evaluator.h"
#include "lab/time/timing.h"
#include "search.h"
#include "store.h"

#include <atomic>

namespace fagen::lab::tune {

struct TuneOptions {
  std::filesystem::path spec, database;
  std::string target; ///< empty: those of the spec
  std::string device = "gpu";
  std::vector<Case> problems;
  SearchOptions search;
  double budgetSeconds = 600; ///< of all problems together
  bool derived = true;        ///< false: only the spec's own tune(...)
  bool gated = true;
  bool pruned = true; ///< by the compiler's time model, where it may
  int jobs = 2;
  int rounds = 3;
  Measure measure = Measure::Time; ///< what is to be least: microseconds, or millijoules
  size_t tiles = 24;               ///< candidates whose synthetic tiles are timed first; 0: none
  ChildLimits limits;
  const std::atomic<bool> *stop = nullptr;
};

struct Elite {
  Point point;
  Record record;
};

/// What a synthetic tile said of a candidate.
struct MicroTile {
  Point point;
  double shorter = 0, longer = 0, predicted = 0; ///< microseconds
};

/// What was found for one problem.
struct StudyResult {
  Case problem;
  StudyKey key;
  BaseKernel base;
  Space space;
  std::vector<Point> ranked;    ///< by what tiles and model expect
  std::vector<MicroTile> micro; ///< the fastest first
  std::vector<Record> log;      ///< in the order in which this search asked
  size_t slow = 0;              ///< points that the time model left out of `ranked`
  size_t run = 0, known = 0;    ///< evaluated now, answered from the store
  std::vector<Elite> elites;    ///< the fastest, at most kElites; in the contest's order when there was one
  Json contest = Json::array(); ///< elites and the shipped one side by side: candidate, median_us, ratio, low, high
  std::string ended;            ///< finished, budget, stopped, failed: a whole generation did for one reason

  std::string shippedName() const { return nameOf(space, space.points.front()); }
  const Record *shipped() const;
  /// "30 of 30 candidates failed, 28 of them alike: ...": the commonest reason; empty where none failed.
  std::string whyTheyFailed() const;
  /// The winner's ratio to the shipped one, {"ratio", "low", "high"}; null: the shipped one is the best, or none ran.
  Json bestOverShipped() const;
};

struct TuneReport {
  Measure measure = Measure::Time;
  std::string device;
  uint32_t sm = 0, sms = 0;
  Json machine;
  std::vector<StudyResult> studies;
};

using TuneProgress = std::function<void(size_t done, size_t total, const std::string &what)>;

TuneReport runTune(TimingDevice &device, const TuneOptions &options, const TuneProgress &progress);

/// A reason without what differs from candidate to candidate: words with digits in them.
std::string plainReason(const Record &record);

inline const char *unitOf(Measure measure) { return measure == Measure::Joules ? "mJ" : "us"; }
/// Of medians in JSON.
inline const char *medianKey(Measure measure) { return measure == Measure::Joules ? "median_mj" : "median_us"; }

std::string tuneTable(const TuneReport &report);
Json tuneJson(const TuneReport &report, const TuneOptions &options);
/// micro_log.csv, micro_best.json, evo_log.csv, evo_best.json, elite.json.
void writeEvidence(const TuneReport &report, const std::filesystem::path &directory);
/// All that was timed, as a file for --device simulated:FILE and for tune-replay.
Json landscapeJson(const TuneReport &report);
/// All that a database has, as fagen --tuned reads it.
Json exportJson(Store &store);

} // namespace fagen::lab::tune
