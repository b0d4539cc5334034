// fagen: takes candidates through compile, gate and time, each step a child process with a time limit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler.h"
#include "lab/cases/cases.h"
#include "lab/support/statistics.h"
#include "store.h"
#include "worker.h"

namespace fagen::lab::tune {

struct ChildLimits {
  double compile = 60, gate = 120, time = 60; ///< seconds; then the child is killed and the candidate has hung
};

struct Sandbox {
  std::string device = "gpu";      ///< for `fagen-run time`: gpu, simulated:FILE
  bool gated = true;               ///< false: candidates are not checked, only timed
  std::filesystem::path directory; ///< candidates' files; each one's own is removed when it has ended
  ChildLimits limits;
  bool metered = false;    ///< a launch's millijoules are measured, not its microseconds
  int rounds = 3;          ///< of a candidate that wins its race
  double raceLimit = 1.08; ///< slower than the best by this factor after its first replays or a turn: it stops
};

class Evaluator {
public:
  Evaluator(const Compiler &compiler, const BaseKernel &base, const Space &space, const Case &problem,
            const Sandbox &sandbox, Worker &worker)
      : compiler(compiler), base(base), space(space), problem(problem), sandbox(sandbox), worker(worker) {}

  /// Compiles; gives the reason when the compiler refuses.
  std::string compile(const Point &point) const;
  /// Compiles, and has `builder` make machine code of it for the cache: that takes seconds, and others may run
  /// meanwhile.
  std::string build(const Point &point, const Case &about, Worker &builder) const;
  /// Compile and gate; others may run meanwhile. Outcome "gated", or what stopped it.
  void prepare(const Point &point, Record &record, Worker &builder) const;
  /// Time, alone on the device; `best`: the median to race against, 0: none yet.
  void time(const Point &point, double best, Record &record) const;
  /// Microseconds of compiled points on another problem, for the micro benchmark; 0: no good. Never joules.
  double timeOn(const Case &other, const Point &point) const;
  /// Compiled points in turns of one process: segments of each, empty for one that did not run.
  std::vector<Segments> contest(const std::vector<Point> &points, int rounds) const;
  void remove(const Point &point) const;
  /// The variant's name in a compiled directory.
  std::string variantOf(const Point &point) const;

private:
  void gate(const Point &point, Record &record) const;
  std::filesystem::path directoryOf(const Point &point) const;
  Json contestant(const Point &point) const;
  Json measured(const std::vector<Point> &points, int rounds, double limit) const;
  Json request(const Case &about, const std::vector<Point> &points, int rounds, double limit) const;

  const Compiler &compiler;
  const BaseKernel &base;
  const Space &space;
  const Case &problem;
  const Sandbox &sandbox;
  Worker &worker;
};

} // namespace fagen::lab::tune
