// fagen: runs of a kernel's roles, without those that repeat others, for executions that share their beginnings.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lets steer more than what is executed: which of two runs masks a tile is the same to an execution. And runs differ
// late: one more step of a loop leaves all before as it was. So each run says up to where it is like the one before,
// and where those behind it will go on.
#pragma once

#include "Execution.h"

#include <set>

namespace fagen {

class DistinctRuns {
public:
  /// Nothing if there is the same already. The timelines must live as long as this.
  void add(const Run &run);
  unsigned size() const { return unsigned(runs.size()); }
  const std::string &steps(unsigned run) const { return runs[run].steps; }
  /// From where it differs from the runs before, which were executed in order.
  void execute(unsigned run, Execution &execution) const;
  /// From the beginning: all roles end a turn of the loop that carries a value before one begins the next, if they can;
  /// but in the first run of so many turns each goes on as it can.
  void executeTurnByTurn(unsigned run, Execution &execution) const;

private:
  struct Entry {
    std::vector<const Timeline *> timelines;
    std::string steps;
    Progress shared; ///< with the one before
    bool isFirst;    ///< of so many turns
  };
  llvm::SmallVector<Progress, 4> placesOf(unsigned run, const Progress *begin) const;
  llvm::SmallVector<Progress, 4> turnsOf(unsigned run) const;
  static uint64_t stepsUpTo(const Entry &run, const Progress &progress);

  std::vector<Entry> runs;
  size_t lastTurns = 0; ///< of the run that was added last, or was there already
  std::set<std::vector<const Timeline *>> seen;
};

} // namespace fagen
