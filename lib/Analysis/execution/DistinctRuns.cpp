// fagen: finds what runs of a kernel's roles have in common.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "DistinctRuns.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;

/// Runs after a run that are asked where they will go on.
static constexpr unsigned kLookAhead = 64;
/// Steps of warps that take as long as keeping the state of an execution.
static constexpr uint64_t kWorthKeeping = 50;

/// Where no cp_async copy is in flight the events of waits are no matter.
unsigned DistinctRuns::doingOf(unsigned role, unsigned number) {
  if (ofEvents.size() <= number)
    ofEvents.resize(number + 1, kUnknown);
  unsigned &doing = ofEvents[number];
  if (doing != kUnknown)
    return doing;
  const Event &event = events[number];
  std::vector<int64_t> all{role,       plan.op(role, event.point).doing, event.active, event.doneAt, event.committedAt,
                           event.bytes};
  all.insert(all.end(), event.positions.begin(), event.positions.end());
  return doing = eventsByDoing.try_emplace(std::move(all), unsigned(eventsByDoing.size())).first->second;
}

unsigned DistinctRuns::doingOf(const Timeline *timeline) {
  auto [known, isNew] = doings.try_emplace(timeline, 0);
  if (!isNew)
    return known->second;
  std::vector<unsigned> all{timeline->role, timeline->firstWarp};
  for (const unsigned number : timeline->numbers)
    all.push_back(doingOf(timeline->role, number));
  return known->second = timelinesByDoing.try_emplace(std::move(all), unsigned(timelinesByDoing.size())).first->second;
}

Progress DistinctRuns::sharedBy(llvm::ArrayRef<const Timeline *> some, llvm::ArrayRef<const Timeline *> others) const {
  Progress shared;
  for (const auto &[one, other] : llvm::zip(some, others)) {
    const std::vector<unsigned> &mine = one->numbers, &its = other->numbers;
    shared.push_back(
        &mine == &its ? unsigned(mine.size())
                      : unsigned(std::mismatch(mine.begin(), mine.end(), its.begin(), its.end()).first - mine.begin()));
  }
  return shared;
}

void DistinctRuns::add(const Run &run) {
  std::vector<const Timeline *> timelines = run.timelines;
  const size_t turns = timelines.front()->turnBegins.size();
  const bool isFirst = std::exchange(lastTurns, turns) != turns;
  if (!seen.insert(timelines).second)
    return;
  std::vector<unsigned> doing;
  for (const Timeline *timeline : timelines)
    doing.push_back(doingOf(timeline));
  const unsigned number = size(), original = byDoings.try_emplace(std::move(doing), number).first->second;
  Entry &entry = runs.emplace_back();
  entry.timelines = std::move(timelines);
  entry.steps = run.steps();
  entry.isFirst = isFirst;
  entry.original = original;
  entry.nextOriginal = unsigned(originals.size()) + (original == number);
  if (original != number) {
    ++runs[original].repeats;
    return;
  }
  entry.shared = originals.empty() ? Progress(entry.timelines.size(), 0)
                                   : sharedBy(entry.timelines, runs[originals.back()].timelines);
  originals.push_back(number);
}

uint64_t DistinctRuns::stepsUpTo(const Entry &run, const Progress &progress) {
  uint64_t steps = 0;
  for (const auto &[timeline, events] : llvm::zip(run.timelines, progress))
    steps += uint64_t(timeline->warps) * events;
  return steps;
}

/// Where originals after this run leave it: what all of those up to one of them have in common. Each is further than
/// the one before.
llvm::SmallVector<Progress, 4> DistinctRuns::placesOf(unsigned run, const Progress *begin) const {
  llvm::SmallVector<Progress, 8> candidates;
  const unsigned first = runs[run].nextOriginal, end = std::min(unsigned(originals.size()), first + kLookAhead);
  if (first == end)
    return {};
  Progress common = sharedBy(runs[run].timelines, runs[originals[first]].timelines);
  for (const unsigned next : llvm::ArrayRef(originals).slice(first, end - first)) {
    if (next != originals[first])
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

void DistinctRuns::execute(unsigned run, std::optional<unsigned> last, Execution &execution) const {
  const Entry &entry = runs[run];
  const Progress shared = last ? sharedBy(entry.timelines, runs[*last].timelines) : Progress(entry.timelines.size(), 0);
  const Progress *begin = execution.resumesAt(shared);
  const bool isLast = !begin || entry.nextOriginal == originals.size() ||
                      !isWithin(*begin, sharedBy(entry.timelines, runs[originals[entry.nextOriginal]].timelines));
  execution.run(entry.timelines, shared, placesOf(run, begin), isLast);
}

void DistinctRuns::executeTurnByTurn(unsigned run, Execution &execution) const {
  execution.run(runs[run].timelines, Progress(runs[run].timelines.size(), 0), turnsOf(run), /*isLast=*/true);
}

std::vector<DistinctRuns::Meeting> DistinctRuns::meetingsOf(unsigned run, const Encounters &encounters) const {
  std::vector<Meeting> meetings;
  std::vector<std::vector<unsigned>> alike; // by timeline and event: after the one before that does the same; 0: none
  for (const Timeline *timeline : runs[run].timelines) {
    llvm::DenseMap<unsigned, unsigned> last;
    std::vector<unsigned> &before = alike.emplace_back();
    for (const unsigned number : timeline->numbers)
      before.push_back(
          std::exchange(last[plan.op(timeline->role, events[number].point).doing], unsigned(before.size()) + 1));
  }
  encounters.forEach([&](Encounters::Place first, const Encounters::Place &second) {
    const Timeline &timeline = *runs[run].timelines[first.timeline];
    auto event = [&]() -> const Event & { return events[timeline.numbers[first.event]]; };
    const Access &access = *plan.op(timeline.role, event().point).accesses[first.access];
    auto slot = [&] { return slotAt(*access.buffer, event().positions[access.operand]); };
    const unsigned met = slot();
    for (unsigned next = first.event + 1; next != 0; next = alike[first.timeline][first.event]) {
      first.event = next - 1;
      if (slot() == met)
        meetings.push_back({first, second});
    }
  });
  return meetings;
}

void DistinctRuns::forEachNewMeeting(
    unsigned run, llvm::ArrayRef<Meeting> meetings,
    llvm::function_ref<void(const Access &, const Access &, int64_t, int64_t)> visit) const {
  const llvm::ArrayRef<const Timeline *> timelines = runs[run].timelines;
  const Progress shared = sharedBy(timelines, runs[run - 1].timelines);
  auto isOld = [&](const Encounters::Place &place) { return place.event < shared[place.timeline]; };
  auto eventAt = [&](const Encounters::Place &place) -> const Event & {
    return events[timelines[place.timeline]->numbers[place.event]];
  };
  auto accessAt = [&](const Encounters::Place &place) -> const Access & {
    return *plan.op(timelines[place.timeline]->role, eventAt(place).point).accesses[place.access];
  };
  for (const auto &[first, second] : meetings)
    if (!isOld(first) || !isOld(second)) {
      const Access &earlier = accessAt(first), &later = accessAt(second);
      visit(earlier, later, eventAt(first).positions[earlier.operand], eventAt(second).positions[later.operand]);
    }
}
