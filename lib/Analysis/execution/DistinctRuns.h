// fagen: runs of a kernel's roles, without those that repeat others, for executions that share their beginnings.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lets steer more than what is executed: which of two runs masks a tile is the same to an execution. So a run may do
// the same as one before it, the original, with other ops: then it meets no hang and no race that the original does
// not, and only what it says of ops may be new. And runs differ late: one more step of a loop leaves all before as it
// was. So each original says up to where it is like the one before, and where those after it will go on.
#pragma once

#include "Execution.h"

#include "fagen/Support/HashOfList.h"

#include <unordered_map>
#include <unordered_set>

namespace fagen {

class DistinctRuns {
public:
  /// Of timelines of the pool, which must live as long as this.
  DistinctRuns(const ExecutionPlan &plan, const TimelinePool &pool) : plan(plan), events(pool) {}
  /// Nothing if there is the same already.
  void add(const Run &run);
  unsigned size() const { return unsigned(runs.size()); }
  const std::string &steps(unsigned run) const { return runs[run].steps; }
  llvm::ArrayRef<const Timeline *> timelines(unsigned run) const { return runs[run].timelines; }
  /// The first run that does the same.
  unsigned originalOf(unsigned run) const { return runs[run].original; }
  unsigned repeatsOf(unsigned run) const { return runs[run].repeats; }
  /// From where it differs from the last one that was executed.
  void execute(unsigned run, std::optional<unsigned> last, Execution &execution) const;
  /// From the beginning: all roles end a turn of the loop that carries a value before one begins the next, if they can;
  /// but in the first run of so many turns each goes on as it can.
  void executeTurnByTurn(unsigned run, Execution &execution) const;
  /// By events of two timelines, which runs that do the same have in common.
  struct Meeting {
    Encounters::Place first, second;
  };
  /// Of an original that met what `encounters` say. It was the last access of some that do the same in a slot; a run
  /// that repeats it with other ops meets the last one of each.
  std::vector<Meeting> meetingsOf(unsigned run, const Encounters &encounters) const;
  /// Calls `visit` with the accesses and positions of those that the run before has not.
  void forEachNewMeeting(
      unsigned run, llvm::ArrayRef<Meeting> meetings,
      llvm::function_ref<void(const Access &first, const Access &second, int64_t firstPosition, int64_t secondPosition)>
          visit) const;

private:
  struct Entry {
    std::vector<const Timeline *> timelines;
    std::string steps;
    bool isFirst = false; ///< of so many turns
    unsigned original = 0;
    unsigned repeats = 0;      ///< of an original: runs after it that do the same
    unsigned nextOriginal = 0; ///< after it, among the originals
    Progress shared;           ///< of an original: with the one before
  };
  static constexpr unsigned kUnknown = ~0u;
  /// The same number for events, or timelines, that do the same.
  unsigned doingOf(unsigned role, unsigned event);
  unsigned doingOf(const Timeline *timeline);
  Progress sharedBy(llvm::ArrayRef<const Timeline *> some, llvm::ArrayRef<const Timeline *> others) const;
  llvm::SmallVector<Progress, 4> placesOf(unsigned run, const Progress *begin) const;
  llvm::SmallVector<Progress, 4> turnsOf(unsigned run) const;
  static uint64_t stepsUpTo(const Entry &run, const Progress &progress);

  const ExecutionPlan &plan;
  const TimelinePool &events;
  std::vector<Entry> runs;
  std::vector<unsigned> originals;
  size_t lastTurns = 0; ///< of the run that was added last, or was there already
  std::unordered_set<std::vector<const Timeline *>, HashOfList> seen;
  std::vector<unsigned> ofEvents;                    ///< by event: its doing
  llvm::DenseMap<const Timeline *, unsigned> doings; ///< of timelines
  std::unordered_map<std::vector<int64_t>, unsigned, HashOfList> eventsByDoing;
  std::unordered_map<std::vector<unsigned>, unsigned, HashOfList> timelinesByDoing;
  std::unordered_map<std::vector<unsigned>, unsigned, HashOfList> byDoings; ///< the original
};

} // namespace fagen
