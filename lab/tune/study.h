// fagen: the search of one problem: answers from the store, or by running candidates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "tune.h"

#include <chrono>

namespace fagen::lab::tune {

class Study {
public:
  using Clock = std::chrono::steady_clock;

  /// `seconds`: from now; `sms` of the device.
  Study(const TuneOptions &options, const Compiler &compiler, Store &store, const Sandbox &sandbox, Worker &worker,
        StudyResult &result, double seconds, int sms, const TuneProgress &progress);

  /// Tiles and search.
  void run();
  /// Evaluates these points too: what was best for other problems of the same kernel.
  void cross(const std::vector<Point> &points);
  /// Elites were timed one after the other; side by side they are put in their final order.
  void contest();

private:
  void timeTiles();
  bool stopped() const { return options.stop && *options.stop; }
  bool mayGoOn();
  std::vector<Measured> evaluate(const std::vector<Point> &points, int generation);
  bool failedAlike(size_t generation) const;
  void giveUpKillers(Record &record);
  void prepareAll(const std::vector<Point> &points, int generation);
  void parallel(size_t count, const std::function<void(size_t, Worker &)> &work) const;
  void begin(const Point &point, Record &record, int generation);
  bool finishOne(const Point &point, Record &record);
  double best() const { return result.elites.empty() ? 0 : result.elites.front().record.median; }
  void note(const Point &point, const Record &record);
  void showProgress(const std::string &what) const;

  const TuneOptions &options;
  Store &store;
  StudyResult &result;
  const TuneProgress &progress;
  Evaluator evaluator;
  Clock::time_point deadline;
  double seconds;
  int sms;
  long number;
  std::map<std::string, Record> records;
};

} // namespace fagen::lab::tune
