// fagen: finds what runs of a kernel's roles have in common.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DistinctRuns.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;

/// Runs behind a run that are asked where they will go on.
static constexpr unsigned kLookAhead = 64;
/// Steps of warps that take as long as keeping the state of an execution.
static constexpr uint64_t kWorthKeeping = 50;

void DistinctRuns::add(const Run &run) {
  std::vector<const Timeline *> timelines = run.timelines;
  const size_t turns = timelines.front()->turnBegins.size();
  const bool isFirst = std::exchange(lastTurns, turns) != turns;
  if (!seen.insert(timelines).second)
    return;
  Progress shared(timelines.size(), 0);
  for (unsigned i = 0; !runs.empty() && i < timelines.size(); ++i) {
    const std::vector<Event> &mine = timelines[i]->events, &its = runs.back().timelines[i]->events;
    shared[i] = &mine == &its
                    ? unsigned(mine.size())
                    : unsigned(std::mismatch(mine.begin(), mine.end(), its.begin(), its.end()).first - mine.begin());
  }
  runs.push_back({std::move(timelines), run.steps(), std::move(shared), isFirst});
}

uint64_t DistinctRuns::stepsUpTo(const Entry &run, const Progress &progress) {
  uint64_t steps = 0;
  for (const auto &[timeline, events] : llvm::zip(run.timelines, progress))
    steps += uint64_t(timeline->warps) * events;
  return steps;
}

/// Where runs behind this one leave it: what all of those up to one of them have in common. Each is further than the
/// one before.
llvm::SmallVector<Progress, 4> DistinctRuns::placesOf(unsigned run, const Progress *begin) const {
  llvm::SmallVector<Progress, 8> candidates;
  Progress common;
  for (const Timeline *timeline : runs[run].timelines)
    common.push_back(unsigned(timeline->events.size()));
  for (unsigned next = run + 1; next < std::min(size(), run + kLookAhead); ++next) {
    for (const auto &[mine, its] : llvm::zip(common, runs[next].shared))
      mine = std::min(mine, its);
    if (begin && !isWithin(*begin, common))
      break;
    candidates.push_back(common);
  }
  llvm::SmallVector<Progress, 4> places;
  uint64_t kept = begin ? stepsUpTo(runs[run], *begin) : 0;
  for (const Progress &candidate : llvm::reverse(candidates))
    if (const uint64_t steps = stepsUpTo(runs[run], candidate); steps >= kept + kWorthKeeping) {
      places.push_back(candidate);
      kept = steps;
    }
  return places;
}

llvm::SmallVector<Progress, 4> DistinctRuns::turnsOf(unsigned run) const {
  llvm::SmallVector<Progress, 4> turns;
  const std::vector<const Timeline *> &timelines = runs[run].timelines;
  const size_t count = timelines.front()->turnBegins.size();
  if (runs[run].isFirst ||
      llvm::any_of(timelines, [&](const Timeline *timeline) { return timeline->turnBegins.size() != count; }))
    return turns;
  for (size_t turn = 0; turn < count; ++turn)
    for (const Timeline *timeline : timelines) {
      if (timeline == timelines.front())
        turns.emplace_back();
      turns.back().push_back(timeline->turnBegins[turn]);
    }
  return turns;
}

void DistinctRuns::execute(unsigned run, Execution &execution) const {
  const Progress *begin = execution.resumesAt(runs[run].shared);
  const bool isLast = !begin || run + 1 == size() || !isWithin(*begin, runs[run + 1].shared);
  execution.run(runs[run].timelines, runs[run].shared, placesOf(run, begin), isLast);
}

void DistinctRuns::executeTurnByTurn(unsigned run, Execution &execution) const {
  execution.run(runs[run].timelines, Progress(runs[run].shared.size(), 0), turnsOf(run), /*isLast=*/true);
}
