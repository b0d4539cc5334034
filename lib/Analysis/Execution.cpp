// fagen: executes the roles of a kernel: who waits for whom, and what each thread then knows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Execution.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {
constexpr unsigned kLanes = 32;
}

Execution::Execution(const Kernel &kernel, llvm::ArrayRef<const Role *> roles, llvm::ArrayRef<Timeline> timelines,
                     AccessTable &table, const ExecutionObserver &observer)
    : kernel(kernel), roles(roles), timelines(timelines), table(table), observer(observer) {
  shape.warps = kernel.threads / kLanes;
  for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
    if (buffer->type == ElementType::MBarrier) {
      firstSlot[buffer.get()] = slots.size();
      for (unsigned i = 0; i < buffer->stages; ++i) {
        slots.emplace_back();
        slots.back().buffer = buffer.get();
        slots.back().number = i;
      }
    }
  shape.slots = slots.size();
  for (Slot &slot : slots)
    slot.gathered = Clock(shape.size());
  barriers.resize(ClockShape::kBarriers);
  for (Barrier &barrier : barriers)
    barrier.gathered = Clock(shape.size());
  for (unsigned role = 0; role < roles.size(); ++role)
    for (unsigned warp = 0; warp < roles[role]->warps; ++warp) {
      warps.emplace_back();
      warps.back().number = roles[role]->firstWarp + warp;
      warps.back().role = role;
      warps.back().clocks.fill(Clock(shape.size()));
    }
  for (const Access &access : table.accesses()) {
    firstInstance.push_back(instances.size());
    instances.resize(instances.size() + size_t(access.buffer->stages) * shape.warps);
  }
}

void Execution::run() {
  for (bool moves = true; moves && !hasFailed;) {
    moves = false;
    for (Warp &warp : warps)
      while (step(warp))
        moves = true;
  }
  if (hasFailed)
    return;
  if (llvm::any_of(warps, [&](const Warp &warp) { return warp.next < timelines[warp.role].events.size(); }))
    return reportHang();
  checkEnd();
}

void Execution::fail(const Op &op, std::string message) {
  if (!hasFailed)
    observer.fail(op, std::move(message));
  hasFailed = true;
}

/// False at the end, and where it has to wait.
bool Execution::step(Warp &warp) {
  const std::vector<Event> &events = timelines[warp.role].events;
  if (hasFailed || warp.next == events.size())
    return false;
  const Event &event = events[warp.next];
  if (event.op && event.active && !execute(warp, event))
    return false;
  ++warp.next;
  warp.hasEntered = false;
  return true;
}

Execution::Lanes Execution::lanesOf(const Warp &warp, const Op &op) const {
  const Role &role = *roles[warp.role];
  const unsigned index = warp.number - role.firstWarp;
  switch (op.kind) {
  case OpKind::CopyIssue:
    if (op.text("kind") != "bulk")
      return kAll;
    [[fallthrough]];
  case OpKind::MbarrierInit:
  case OpKind::FetchTile:
  case OpKind::HandTile:
    return index == 0 ? kFirst : 0;
  case OpKind::BulkStore:
  case OpKind::BulkCommit:
  case OpKind::BulkWait:
  case OpKind::Arrive:
  case OpKind::Wait: {
    const llvm::StringRef by = op.has("by") ? op.text("by") : "role";
    if (by == "thread")
      return kAll;
    const unsigned step = by == "warp" ? 1 : by == "group" ? ClockShape::kGroupWarps : role.warps;
    return index % step == 0 ? kFirst : 0;
  }
  case OpKind::AwaitTurn:
  case OpKind::PassTurn:
    return op.has("group") && op.integer("group") != index / ClockShape::kGroupWarps ? 0 : kAll;
  default:
    return kAll;
  }
}

/// False: not yet.
bool Execution::execute(Warp &warp, const Event &event) {
  const Op &op = *event.op;
  const Lanes lanes = lanesOf(warp, op);
  if (lanes == 0)
    return true;
  const bool isFirstTry = !warp.hasEntered;
  warp.hasEntered = true;
  if (isFirstTry)
    checkAccesses(warp, event, lanes);
  switch (op.kind) {
  case OpKind::MbarrierInit:
    initialise(event);
    break;
  case OpKind::Arrive:
    arrive(warp, event, lanes);
    break;
  case OpKind::Wait:
    if (!wait(warp, event, lanes))
      return false;
    break;
  case OpKind::CopyIssue:
    if (op.text("kind") == "bulk")
      copyInBulk(warp, event);
    break;
  case OpKind::Barrier:
  case OpKind::BarrierArrive:
  case OpKind::AwaitTurn:
  case OpKind::PassTurn:
    if (!comeToBarrier(warp, event, isFirstTry))
      return false;
    break;
  case OpKind::HandTile:
    handed[op.operand("dst").buffer] = event.positions[0];
    break;
  case OpKind::TakeTile:
    checkTaken(event);
    break;
  case OpKind::Fence:
    (op.text("kind") == "async_proxy" ? warp.asyncFence
     : op.text("kind") == "mma"       ? warp.mmaFence
                                      : warp.initFence) = warp.next + 1;
    break;
  case OpKind::Mma:
  case OpKind::LoadFragment:
  case OpKind::MmaIssue:
    if (kernel.backend != "scalar")
      meetLanes(warp, &op, /*isMemoryToo=*/false);
    if (op.kind == OpKind::MmaIssue)
      issueProduct(warp, op);
    break;
  case OpKind::MmaCommit:
    meetLanes(warp, &op, /*isMemoryToo=*/false);
    ++warp.products;
    warp.lastIssue.resize(warp.products + 1, warp.lastIssue.back()); // of an empty group: as the one before
    break;
  case OpKind::MmaWait:
    waitForProducts(warp, op);
    break;
  case OpKind::BulkStore:
    warp.hasOpenStores = true;
    warp.lastStore = &op;
    break;
  case OpKind::BulkCommit:
    ++warp.stores;
    warp.hasOpenStores = false;
    break;
  case OpKind::BulkWait:
    if (const int64_t done = int64_t(warp.stores) - op.integer("pending"); done > 0)
      warp.clocks[0].raise(shape.stores(warp.number), unsigned(done), &op, &op);
    break;
  default:
    break;
  }
  remember(warp, event, lanes);
  return !hasFailed;
}

/// All roles work on the same tiles only if each takes, turn by turn, what was handed over for that turn. Where this is
/// the last one in the order of this execution, and races are none, it is so in every order.
void Execution::checkTaken(const Event &event) {
  const Buffer *buffer = event.op->operand("src").buffer;
  auto last = handed.find(buffer);
  if (last == handed.end() || last->second != event.positions[1])
    fail(*event.op, "nothing was handed over at position " + std::to_string(event.positions[1]) + " of %" +
                        buffer->name +
                        (last == handed.end() ? "" : "; position " + std::to_string(last->second) + " was, last"));
}

/// lastIssue has an entry for the group that is open. The PTX ISA asks for a fence before a warp's first product,
/// whatever was written.
void Execution::issueProduct(Warp &warp, const Op &op) {
  if (warp.mmaFence == 0)
    return fail(op, "no fence of kind mma before the first product");
  warp.lastIssue.resize(warp.products + 2);
  warp.lastIssue.back() = warp.next + 1;
}

/// A product is one of all four warps: where it is complete, each of them has issued it.
void Execution::waitForProducts(Warp &warp, const Op &op) {
  meetLanes(warp, &op, /*isMemoryToo=*/false);
  const int64_t done = int64_t(warp.products) - op.integer("pending");
  if (done <= 0)
    return;
  const unsigned first = warp.number - warp.number % ClockShape::kGroupWarps;
  const unsigned end = std::min(first + ClockShape::kGroupWarps, shape.warps);
  for (Clock &clock : warp.clocks) {
    clock.raise(shape.products(warp.number), unsigned(done), &op, &op);
    for (unsigned agent = 2 * first; agent < 2 * end; ++agent)
      clock.raise(shape.of(Layer::Executed, agent), warp.lastIssue[done], &op, &op);
  }
}

bool Execution::isBlocked(Warp &warp, const Event &event) {
  const unsigned id = idOf(warp, *event.op);
  const unsigned generation = warp.generations[id] - 1;
  if (barriers[id].complete.size() <= generation)
    return true;
  acquire(warp, kAll, barriers[id].complete[generation], event.op);
  return false;
}

// Clocks.

/// What these lanes know now, and that they are here.
Clock Execution::release(const Warp &warp, Lanes lanes, const Op *op) const {
  Clock clock(shape.size());
  for (unsigned lane = 0; lane < 2; ++lane) {
    if (!(lanes >> lane & 1))
      continue;
    const unsigned agent = 2 * warp.number + lane;
    clock.join(warp.clocks[lane]);
    clock.raise(shape.of(Layer::Performed, agent), warp.next + 1, op);
    clock.raise(shape.of(Layer::Executed, agent), warp.next + 1, op);
    clock.raise(shape.of(Layer::AsyncProxy, agent), warp.asyncFence, op);
    clock.raise(shape.of(Layer::Initialised, agent), warp.initFence, op);
  }
  return clock;
}

void Execution::acquire(Warp &warp, Lanes lanes, const Clock &clock, const Op *op) {
  for (unsigned lane = 0; lane < 2; ++lane)
    if (lanes >> lane & 1)
      warp.clocks[lane].join(clock, op);
}

/// All lanes come together: at a barrier, or without one, at an op that the lanes of a warp execute together.
void Execution::meetLanes(Warp &warp, const Op *op, bool isMemoryToo) {
  const Clock clock = release(warp, kAll, op);
  if (isMemoryToo)
    return acquire(warp, kAll, clock, op);
  for (Clock &mine : warp.clocks)
    mine.join(clock, shape.of(Layer::Executed, 0), shape.of(Layer::AsyncProxy, 0), op);
}

bool Execution::isKnown(const Warp &warp, Lanes lanes, unsigned entry, unsigned value) const {
  for (unsigned lane = 0; lane < 2; ++lane)
    if (lanes >> lane & 1 && warp.clocks[lane][entry].value < value)
      return false;
  return true;
}

// CTA and named barriers.

/// False: others are still to come.
bool Execution::comeToBarrier(Warp &warp, const Event &event, bool isFirstTry) {
  const Op &op = *event.op;
  if (op.kind == OpKind::Barrier && op.text("scope") == "warp") {
    meetLanes(warp, &op, /*isMemoryToo=*/true);
    return true;
  }
  if (isFirstTry)
    arriveAtBarrier(warp, op);
  return (op.kind != OpKind::Barrier && op.kind != OpKind::AwaitTurn) || !isBlocked(warp, event);
}

static bool isTurn(const Op &op) { return op.kind == OpKind::AwaitTurn || op.kind == OpKind::PassTurn; }

/// 0 is the CTA's.
unsigned Execution::idOf(const Warp &warp, const Op &op) const {
  if (op.kind == OpKind::Barrier && op.text("scope") == "cta")
    return 0;
  const unsigned id = op.integer("id"), groups = op.has("groups") ? op.integer("groups") : 1;
  if (isTurn(op)) {
    const unsigned group = (warp.number - roles[warp.role]->firstWarp) / ClockShape::kGroupWarps;
    return id + (group + (op.kind == OpKind::PassTurn)) % groups;
  }
  const unsigned index = warp.number - std::min<unsigned>(warp.number, op.integer("first_warp"));
  const bool isInterleaved = op.has("interleaved") && op.integer("interleaved") != 0;
  return std::min(id + (isInterleaved ? index % groups : index / unsigned(op.integer("warps") / groups)),
                  ClockShape::kBarriers - 1);
}

void Execution::arriveAtBarrier(Warp &warp, const Op &op) {
  const bool isOfCta = op.kind == OpKind::Barrier && op.text("scope") == "cta", hasRange = !isOfCta && !isTurn(op);
  const unsigned first = hasRange ? op.integer("first_warp") : 0, count = hasRange ? op.integer("warps") : shape.warps;
  if (warp.number < first || warp.number >= first + count)
    return fail(op, "the barrier waits for warps " + std::to_string(first) + " to " + std::to_string(first + count) +
                        "; warp " + std::to_string(warp.number) + " of role " + roles[warp.role]->name +
                        " is none of them");
  const unsigned id = idOf(warp, op), groups = op.has("groups") ? op.integer("groups") : 1;
  const unsigned expected = isTurn(op) ? 2 * ClockShape::kGroupWarps : count / groups;
  Barrier &barrier = barriers[id];
  const unsigned generation = warp.generations[id]++;
  if (!isKnown(warp, kAll, shape.barrier(id), generation))
    return fail(op, "the arrival may count among those before it at barrier " + std::to_string(id) +
                        ": nothing tells the warp that those are complete");
  if (barrier.arrived == 0)
    barrier.expected = expected;
  if (barrier.expected != expected)
    return fail(op, "at barrier " + std::to_string(id) + " others wait for " + std::to_string(barrier.expected) +
                        " warps, this op for " + std::to_string(expected));
  barrier.last = &op;
  barrier.gathered.join(release(warp, kAll, &op));
  if (++barrier.arrived < barrier.expected)
    return;
  barrier.gathered.raise(shape.barrier(id), barrier.complete.size() + 1, &op);
  barrier.complete.push_back(barrier.gathered);
  barrier.gathered = Clock(shape.size());
  barrier.arrived = 0;
}

// Ends.

std::string Execution::whatFor(const Warp &warp) const {
  const Event &event = timelines[warp.role].events[warp.next];
  const Op &op = *event.op;
  if (op.kind == OpKind::Barrier || op.kind == OpKind::AwaitTurn) {
    const Barrier &barrier = barriers[idOf(warp, op)];
    return "for " + std::to_string(barrier.expected - barrier.arrived) + " more of the " +
           std::to_string(barrier.expected) + " warps of its barrier";
  }
  const Operand &bar = op.operand("bar");
  const Slot &slot = slotOf(bar, event.positions[0]);
  std::string text = "for " + textOf(slot, phaseOf(bar, event.positions[0]));
  if (slot.phase() != phaseOf(bar, event.positions[0]))
    return text + ", while phase " + std::to_string(slot.phase()) + " is not complete";
  text += ", which has " + std::to_string(slot.arrived) + " of " + std::to_string(slot.needed) + " arrivals";
  if (slot.announced != 0 || slot.copied != 0)
    text += " and " + std::to_string(slot.copied) + " of " + std::to_string(slot.announced) + " B";
  return text;
}

/// Nobody can go on: who waits for what, a warp for each role.
void Execution::reportHang() {
  std::string message;
  const Op *first = nullptr;
  unsigned lastRole = ~0u;
  for (const Warp &warp : warps) {
    if (warp.next == timelines[warp.role].events.size() || warp.role == lastRole)
      continue;
    lastRole = warp.role;
    const Op *op = timelines[warp.role].events[warp.next].op;
    first = first ? first : op;
    message += (message.empty() ? "the roles wait for ever: " : "; ") + observer.nameOf(op) + " " + whatFor(warp);
  }
  fail(*first, message);
}

/// What nobody waits for any more.
void Execution::checkEnd() {
  for (const Slot &slot : slots) {
    auto knows = [&](const Warp &warp) {
      return isKnown(warp, kFirst, shape.slot(&slot - slots.data()), slot.lastCopyPhase + 1);
    };
    if (slot.lastCopy && llvm::none_of(warps, knows))
      return fail(*slot.lastCopy,
                  "the CTA may end before the copy has landed: nobody waits for " + textOf(slot, slot.lastCopyPhase));
    if (slot.arrived != 0)
      return fail(*slot.lastArrival, "at the end " + textOf(slot, slot.phase()) + " has " +
                                         std::to_string(slot.arrived) + " of " + std::to_string(slot.needed) +
                                         " arrivals");
  }
  for (unsigned id = 0; id < barriers.size(); ++id)
    if (barriers[id].arrived != 0)
      return fail(*barriers[id].last, "at the end barrier " + std::to_string(id) + " has " +
                                          std::to_string(barriers[id].arrived) + " of " +
                                          std::to_string(barriers[id].expected) + " warps");
  for (const Warp &warp : warps)
    if (warp.lastStore && (warp.hasOpenStores || !isKnown(warp, kFirst, shape.stores(warp.number), warp.stores)))
      return fail(*warp.lastStore, "role " + roles[warp.role]->name +
                                       " may end before its bulk_stores have read their source: no bulk_wait says so");
}
