// fagen: takes candidates through compile, gate and time, each step a child process with a time limit.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "cases.h"
#include "tune/compiler.h"
#include "tune/store.h"

namespace fagen::lab::tune {

struct ChildLimits {
  double compile = 60, gate = 120, time = 60; ///< seconds; then the child is killed and the candidate has hung
};

struct Sandbox {
  std::string device = "gpu";      ///< for `fagen-run time`: gpu, simulated:FILE
  bool gated = true;               ///< false: candidates are not checked, only timed
  std::filesystem::path directory; ///< candidates' files; each one's own is removed when it has ended
  ChildLimits limits;
  int rounds = 3;          ///< of a candidate that wins its race
  double raceLimit = 1.08; ///< after one round, slower than the best by this factor: it stops
};

class Evaluator {
public:
  Evaluator(const Compiler &compiler, const BaseKernel &base, const Space &space, const Case &problem,
            const Sandbox &sandbox)
      : compiler(compiler), base(base), space(space), problem(problem), sandbox(sandbox) {}

  /// Compile and gate; may run beside others. Outcome "gated", or what stopped it.
  void prepare(const Point &point, Record &record) const;
  /// Time, alone on the device; `best`: the median to race against, 0: none yet.
  void time(const Point &point, double best, Record &record) const;
  /// The best against the shipped one, in turns of one process.
  Json duel(const Point &shipped, const Point &best) const;
  void remove(const Point &point) const;
  /// The variant's name in a compiled directory.
  std::string variantOf(const Point &point) const;

private:
  struct Answer {
    Json json;
    bool ended = false; ///< with a result
  };
  std::filesystem::path directoryOf(const Point &point) const;
  Answer run(const std::string &stage, std::vector<std::string> arguments, double seconds, Record &record) const;
  bool timeRounds(const Point &point, int rounds, Record &record) const;
  std::vector<std::string> timing(int rounds) const;

  const Compiler &compiler;
  const BaseKernel &base;
  const Space &space;
  const Case &problem;
  const Sandbox &sandbox;
};

} // namespace fagen::lab::tune
