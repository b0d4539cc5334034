// fagen: accesses in an execution: does who comes later know of who came before?
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of each access only the last instance of each warp and slot is kept: who knows of it knows of those before, whether
// they are done in program order or complete in the order of their groups and phases.

#include "Execution.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

static unsigned slotNumber(const Access &access, int64_t position) {
  const int64_t stages = access.buffer->stages;
  return unsigned(((position % stages) + stages) % stages);
}

static bool isBulkCopy(const Op &op) { return op.kind == OpKind::CopyIssue && op.text("kind") == "bulk"; }

void Execution::checkAccesses(Warp &warp, const Event &event, Lanes lanes) {
  for (const Access &second : table.of(event.op)) {
    const int64_t position = event.positions[second.operand];
    for (const Neighbour &first : table.neighboursOf(second, position))
      checkAgainst(warp, position, lanes, second, first);
  }
}

void Execution::checkAgainst(Warp &warp, int64_t position, Lanes lanes, const Access &second, const Neighbour &first) {
  const Conflict &conflict = *first.conflict;
  const Access &access = table.accesses()[first.access];
  const Role &role = *roles[access.role];
  for (unsigned other = role.firstWarp; other < role.firstWarp + role.warps; ++other) {
    const bool meets = conflict.scope > Scope::Thread && (conflict.meets[other] >> warp.number & 1);
    // The same thread, if not only it: to be asked where one of the two is no plain access.
    const bool isSame = !meets && other == warp.number && (conflict.warps >> warp.number & 1);
    if (!meets && !isSame)
      continue;
    const Instance &found = instance(access, first.slot, other);
    if (found.exists)
      compare(warp, second, position, lanes, access, other, found, isSame);
  }
}

void Execution::compare(Warp &warp, const Access &second, int64_t position, Lanes lanes, const Access &first,
                        unsigned firstWarp, const Instance &instance, bool isSameThread) {
  if (isSameThread && !first.isAsync && !first.isByAsyncProxy && !second.isAsync && !second.isByAsyncProxy)
    return;
  Known by;
  std::string open = missing(warp, second, lanes, first, firstWarp, instance, isSameThread, by);
  observer.meet(first, second, instance.position, position, std::move(open), by);
}

/// What says that an asynchronous access is complete.
static std::string completionOf(const Op &op) {
  switch (op.kind) {
  case OpKind::MmaIssue:
    return "mma_wait";
  case OpKind::BulkStore:
    return "bulk_wait";
  default:
    return op.operand("full").buffer ? "wait for its phase of %" + op.operand("full").buffer->name : "copy_wait";
  }
}

/// Empty if the lanes know that the instance is done, and may follow it; `by` is then what told the first of them.
std::string Execution::missing(const Warp &warp, const Access &second, Lanes lanes, const Access &first,
                               unsigned firstWarp, const Instance &instance, bool isSameThread, Known &by) const {
  const bool isOfFragment = second.buffer->space == Space::Fragment;
  if (isOfFragment && first.isAsync && second.isAsync)
    return {}; // products of a group of warps follow each other
  if (instance.value != 0) {
    for (unsigned lane = 0; lane < 2; ++lane)
      if (lanes >> lane & 1) {
        by = warp.clocks[lane][instance.entry];
        if (by.value < instance.value)
          return "no " + completionOf(*first.op) + " says that the first is complete";
      }
    return {};
  }
  if (instance.event == Event::kNever)
    return "no " + completionOf(*first.op) + " says that the first is complete";
  const bool isProxyCrossed = second.isByAsyncProxy && !first.isByAsyncProxy;
  const Layer layer = first.op->kind == OpKind::MbarrierInit ? Layer::Initialised : Layer::AsyncProxy;
  const unsigned ownFence = layer == Layer::Initialised ? warp.initFence : warp.asyncFence;
  const std::string noFence =
      layer == Layer::Initialised ? "no fence of kind mbarrier_init between" : "no fence of kind async_proxy between";
  if (isOfFragment && second.isAsync)
    return warp.mmaFence > instance.event ? "" : "no fence of kind mma between";
  for (unsigned lane = 0; lane < 2; ++lane)
    for (unsigned firstLane = 0; firstLane < 2; ++firstLane) {
      if (!(lanes >> lane & 1) || !(instance.lanes >> firstLane & 1))
        continue;
      const unsigned agent = 2 * firstWarp + firstLane;
      if (isSameThread && lane != firstLane)
        continue;
      const bool isItself = firstWarp == warp.number && lane == firstLane && (lane == 0 || isSameThread);
      const Clock &clock = warp.clocks[lane];
      if (!isItself) {
        by = clock[shape.of(Layer::Performed, agent)];
        if (by.value <= instance.event)
          return "nothing orders the two";
      }
      if (isProxyCrossed && (isItself ? ownFence : clock[shape.of(layer, agent)].value) <= instance.event)
        return noFence;
    }
  return {};
}

void Execution::remember(Warp &warp, const Event &event, Lanes lanes) {
  for (const Access &access : table.of(event.op)) {
    const int64_t position = event.positions[access.operand];
    Instance &last = instance(access, slotNumber(access, position), warp.number);
    last = {true, warp.next, position, lanes, 0, 0};
    if (!access.isAsync)
      continue;
    const Op &op = *event.op;
    if (isBulkCopy(op)) {
      const Operand &full = op.operand("full");
      const Slot &slot = slotOf(full, event.positions[2]);
      last.entry = shape.slot(&slot - slots.data());
      last.value = unsigned(phaseOf(full, event.positions[2]) + 1);
    } else if (op.kind == OpKind::MmaIssue) {
      last.entry = shape.products(warp.number);
      last.value = warp.products + 1;
    } else if (op.kind == OpKind::BulkStore) {
      last.entry = shape.stores(warp.number);
      last.value = warp.stores + 1;
    } else {
      last.event = event.doneAt;
    }
  }
}
