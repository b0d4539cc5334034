// fagen: searches the best schedule of each problem, within a budget of time.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "timing.h"
#include "tune/compiler.h"
#include "tune/evaluator.h"
#include "tune/search.h"
#include "tune/store.h"

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
  int jobs = 2;
  int rounds = 3;
  ChildLimits limits;
  const std::atomic<bool> *stop = nullptr;
};

struct Elite {
  Point point;
  Record record;
};

/// What was found for one problem.
struct StudyResult {
  Case problem;
  StudyKey key;
  BaseKernel base;
  Space space;
  std::vector<Point> ranked;
  std::vector<Record> log;   ///< in the order in which this search asked
  size_t run = 0, known = 0; ///< evaluated now, answered from the store
  std::vector<Elite> elites; ///< the fastest, at most kElites
  Json duel;                 ///< the best against the shipped one, side by side; null: the shipped one is the best
  std::string ended;         ///< finished, budget, stopped

  const Record *shipped() const;
};

struct TuneReport {
  std::string device;
  uint32_t sm = 0, sms = 0;
  Json machine;
  std::vector<StudyResult> studies;
};

using TuneProgress = std::function<void(size_t done, size_t total, const std::string &what)>;

TuneReport runTune(TimingDevice &device, const TuneOptions &options, const TuneProgress &progress);

std::string tuneTable(const TuneReport &report);
Json tuneJson(const TuneReport &report, const TuneOptions &options);
/// micro_log.csv, micro_best.json, evo_log.csv, evo_best.json, elite.json.
void writeEvidence(const TuneReport &report, const std::filesystem::path &directory);
/// All that was timed, as a file for --device simulated:FILE.
Json landscapeJson(const TuneReport &report);

} // namespace fagen::lab::tune
