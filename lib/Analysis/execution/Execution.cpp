// fagen: executes the roles of a kernel: who waits for whom, and what each thread then knows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Execution.h"

#include "fagen/Target/MmaInstrs.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

Execution::Execution(ExecutionPlan &plan, const TimelinePool &pool, const ExecutionObserver &observer)
    : plan(plan), events(pool), shape(plan.shape), observer(observer) {
  const Clock nothing(shape.size());
  for (unsigned cta = 0; cta < plan.ctas; ++cta)
    addCta(cta);
  for (unsigned id = 0; id < plan.barriers(); ++id) {
    Barrier &barrier = initial.barriers.emplace_back();
    if (shape.hasBarrier(id))
      barrier.gathered = barrier.complete = nothing;
  }
  initial.instances.resize(size_t(plan.ctas) * plan.instances());
  initial.filled.resize(size_t(plan.ctas) * plan.tileSlots());
  initial.remote.resize(size_t(plan.ctas) * 2 * shape.warps);
}

void Execution::addCta(unsigned cta) {
  const Clock nothing(shape.size());
  for (const ExecutionPlan::MbarrierSlot &planned : plan.slots) {
    Slot &slot = initial.slots.emplace_back();
    slot.buffer = planned.buffer;
    slot.number = planned.number;
    slot.countsBytes = planned.countsBytes;
    slot.cta = cta;
    slot.gathered = slot.last = nothing;
  }
  for (unsigned role = 0; role < plan.roles().size(); ++role)
    for (unsigned number = 0; number < plan.roles()[role]->warps; ++number) {
      Warp &warp = initial.warps.emplace_back();
      warp.number = plan.roles()[role]->firstWarp + number;
      warp.role = role;
      warp.cta = cta;
      warp.agent = cta * plan.ctaWarps + warp.number;
      warp.clocks = LaneClocks(shape.size());
      warp.generations.resize(plan.barriers());
    }
}

/// The same ones in each run.
void Execution::assignTimelines() {
  timelineOf.resize(shape.warps);
  for (Warp &warp : initial.warps)
    timelineOf[warp.agent] =
        uint8_t(warp.timeline = llvm::find_if(timelines,
                                              [&](const Timeline *timeline) {
                                                return timeline->role == warp.role &&
                                                       warp.number - timeline->firstWarp < timeline->warps;
                                              }) -
                                timelines.begin());
}

bool fagen::isWithin(const Progress &progress, const Progress &limit) {
  return llvm::all_of(llvm::zip(progress, limit), [](auto pair) { return std::get<0>(pair) <= std::get<1>(pair); });
}

const Progress *Execution::resumesAt(const Progress &shared) {
  while (places != 0 && !isWithin(saved[places - 1].progress, shared))
    --places;
  return places == 0 ? nullptr : &saved[places - 1].progress;
}

void Execution::run(llvm::ArrayRef<const Timeline *> ofWarps, const Progress &shared,
                    llvm::ArrayRef<Progress> newPlaces, bool isLast) {
  if (timelines.empty()) {
    timelines = ofWarps;
    assignTimelines();
  }
  timelines = ofWarps;
  hasFailed = false;
  const Progress *place = resumesAt(shared);
  met.backTo(place ? *place : Progress(timelines.size(), 0));
  if (!place)
    state = initial;
  else if (isLast)
    std::swap(state, saved[--places].state);
  else
    state = saved[places - 1].state;
  for (const Progress &place : newPlaces) {
    goOn(place);
    if (hasFailed)
      return;
    save(place);
  }
  Progress ends;
  for (const Timeline *timeline : timelines)
    ends.push_back(timeline->numbers.size());
  goOn(ends);
  if (hasFailed)
    return;
  if (!llvm::all_of(state.warps, [&](const Warp &warp) { return isAtEnd(warp); }))
    return reportHang();
  checkEnd();
}

/// Into what older places have left: most of a state is memory that it has already.
void Execution::save(const Progress &progress) {
  if (places == saved.size())
    saved.emplace_back();
  saved[places].progress = progress;
  saved[places++].state = state;
}

/// Until each warp is at its limit or waits.
void Execution::goOn(const Progress &limits) {
  for (bool moves = true; moves && !hasFailed;) {
    moves = false;
    for (Warp &warp : state.warps)
      while (step(warp, limits[warp.timeline]))
        moves = true;
  }
}

void Execution::fail(const Op &op, std::string message) {
  if (!hasFailed)
    observer.fail(op, std::move(message));
  hasFailed = true;
}

/// False at the limit, and where it has to wait.
bool Execution::step(Warp &warp, unsigned limit) {
  if (hasFailed || warp.event == limit)
    return false;
  const Event &event = eventOf(warp);
  const PlannedOp &op = plan.op(warp.role, event.point);
  const Lanes lanes = op.lanes[warp.number - plan.roles()[warp.role]->firstWarp];
  if (lanes != 0 && !execute(warp, event, op, lanes))
    return false;
  ++warp.event;
  warp.hasEntered = false;
  return true;
}

std::string Execution::ofCta(unsigned cta) const { return plan.ctas > 1 ? " of CTA " + std::to_string(cta) : ""; }

/// False: not yet.
bool Execution::execute(Warp &warp, const Event &event, const PlannedOp &op, Lanes lanes) {
  const bool isFirstTry = !warp.hasEntered;
  warp.hasEntered = true;
  if (isFirstTry)
    checkAccesses(warp, event, op, lanes);
  if (op.sync.needsFence == Means::InitFence)
    initialise(warp, op, event);
  if (op.sync.isTogether && mmaFamily(plan.kernel.backend).isCollective)
    meetLanes(warp, op, /*isMemoryToo=*/false);
  begin(warp, event, op);
  if (isBarrier(op.sync.releases) ? !comeToBarrier(warp, op, isFirstTry) : !acquire(warp, event, op, lanes))
    return false;
  release(warp, event, op, lanes);
  remember(warp, event, op, lanes);
  return !hasFailed;
}

/// What goes on without threads.
void Execution::begin(Warp &warp, const Event &event, const PlannedOp &op) {
  switch (op.sync.done) {
  case Means::Phases:
    for (auto [cta, end] = ctasOf(warp, op); cta < end; ++cta)
      copyInBulk(cta, warp, op, event);
    return;
  case Means::ProductGroups:
    return issueProduct(warp);
  case Means::StoreGroups:
    warp.hasOpenStores = true;
    warp.lastStore = op.op;
    return;
  default:
    return;
  }
}

/// False: not yet.
bool Execution::acquire(Warp &warp, const Event &event, const PlannedOp &op, Lanes lanes) {
  switch (op.sync.acquires) {
  case Means::Phases:
    return wait(warp, op, event, lanes);
  case Means::ProductGroups:
    waitForProducts(warp, op);
    return true;
  case Means::StoreGroups:
    if (const int64_t done = int64_t(warp.stores) - op.pending; done > 0)
      warp.clocks.apart(0).raise(shape.stores(warp.agent), unsigned(done), op.number, op.number);
    return true;
  default:
    return true;
  }
}

void Execution::release(Warp &warp, const Event &event, const PlannedOp &op, Lanes lanes) {
  switch (op.sync.releases) {
  case Means::Phases:
    for (auto [cta, end] = ctasOf(warp, op); cta < end; ++cta)
      arrive(cta, warp, op, event, lanesFor(op, lanes, cta));
    return;
  case Means::AsyncFence:
    warp.asyncFence = warp.event + 1;
    return;
  case Means::InitFence:
    warp.initFence = warp.event + 1;
    return;
  case Means::ProductGroups:
    meetLanes(warp, op, /*isMemoryToo=*/false);
    ++warp.products;
    warp.lastIssue.resize(warp.products + 1, warp.lastIssue.back()); // of an empty group: as the one before
    return;
  case Means::StoreGroups:
    ++warp.stores;
    warp.hasOpenStores = false;
    return;
  default:
    return;
  }
}

/// lastIssue has an entry for the group that is open.
void Execution::issueProduct(Warp &warp) {
  warp.lastIssue.resize(warp.products + 2);
  warp.lastIssue.back() = warp.event + 1;
}

/// A product is one of all four warps: where it is complete, each of them has issued it.
void Execution::waitForProducts(Warp &warp, const PlannedOp &op) {
  meetLanes(warp, op, /*isMemoryToo=*/false);
  const int64_t done = int64_t(warp.products) - op.pending;
  if (done <= 0)
    return;
  const unsigned first = warp.agent - warp.number % ClockShape::kGroupWarps;
  const unsigned end = std::min(first + ClockShape::kGroupWarps, (warp.cta + 1) * plan.ctaWarps);
  warp.clocks.forEach([&](Clock &clock) {
    clock.raise(shape.products(warp.agent), unsigned(done), op.number, op.number);
    for (unsigned agent = 2 * first; agent < 2 * end; ++agent)
      clock.raise(shape.of(Layer::Executed, agent), warp.lastIssue[done], op.number, op.number);
  });
}

// Clocks.

/// What these lanes know now, and that they are here.
void Execution::release(Clock &to, const Warp &warp, Lanes lanes, const PlannedOp &op) const {
  for (unsigned lane = 0; lane < 2; ++lane) {
    if (!(lanes >> lane & 1))
      continue;
    const unsigned agent = 2 * warp.agent + lane;
    if (lane == 0 || lanes != kAllLanes || !warp.clocks.areOne())
      to.join(warp.clocks[lane]);
    to.raise(shape.of(Layer::Performed, agent), warp.event + 1, op.number);
    to.raise(shape.of(Layer::Executed, agent), warp.event + 1, op.number);
    to.raise(shape.of(Layer::AsyncProxy, agent), warp.asyncFence, op.number);
    to.raise(shape.of(Layer::Initialised, agent), warp.initFence, op.number);
  }
}

void Execution::acquire(Warp &warp, Lanes lanes, const Clock &clock, const PlannedOp &op) {
  if (lanes == kAllLanes)
    return warp.clocks.forEach([&](Clock &mine) { mine.join(clock, op.number); });
  warp.clocks.apart(lanes == kFirstLane ? 0 : 1).join(clock, op.number);
  warp.lanesAgree = false;
}

/// All lanes come together: at a barrier, or without one, at an op that the lanes of a warp execute together.
void Execution::meetLanes(Warp &warp, const PlannedOp &op, bool isMemoryToo) {
  auto raise = [&](Clock &clock, unsigned lane) {
    const unsigned agent = 2 * warp.agent + lane;
    auto raiseTo = [&](Layer layer, unsigned event) {
      clock.raise(shape.of(layer, agent), event, op.number, op.number);
    };
    raiseTo(Layer::Executed, warp.event + 1);
    if (!isMemoryToo)
      return;
    raiseTo(Layer::Performed, warp.event + 1);
    raiseTo(Layer::AsyncProxy, warp.asyncFence);
    raiseTo(Layer::Initialised, warp.initFence);
  };
  const bool didAgree = std::exchange(warp.lanesAgree, true);
  if (warp.clocks.areOne() || (didAgree && !isMemoryToo)) // then they differ in what is raised now
    return warp.clocks.forEach([&](Clock &clock) {
      raise(clock, 0);
      raise(clock, 1);
    });
  const unsigned begin = isMemoryToo ? 0 : shape.executedBegin(),
                 end = isMemoryToo ? shape.size() : shape.executedEnd();
  Clock &first = warp.clocks.apart(0), &others = warp.clocks.apart(1);
  raise(first, 0);
  raise(others, 1);
  first.join(others, begin, end, op.number);
  others.join(first, begin, end, op.number);
  if (isMemoryToo)
    warp.clocks.unite();
}
