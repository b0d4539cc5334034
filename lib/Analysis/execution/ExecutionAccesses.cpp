// fagen: accesses in an execution: does who comes later know of who came before?
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of each access only the last instance of each warp and slot is kept: who knows of it knows of those before, whether
// they are done in program order or complete in the order of their groups and phases.

#include "Execution.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace fagen;
using namespace fagen::ir;

/// Whether the CTAs of a cluster bring their shares of one tile: not the same rows.
static bool isOfOneTile(const Access &first, const Access &second, int64_t firstPosition, int64_t secondPosition) {
  return first.op == second.op && firstPosition == secondPosition && first.op->isSet(Attr::Cluster) &&
         syncOf(*first.op).done == Means::Phases;
}

/// None if the lanes know that the instance is done, and may follow it; `by` is then what told the last of them.
Gap Execution::missing(const Coming &second, const Earlier &first, Known *by) const {
  const Warp &warp = second.warp;
  const Instance &instance = first.instance;
  if (instance.entry != 0) {
    for (unsigned lane = 0; by && lane < 2; ++lane)
      if (second.lanes >> lane & 1) {
        *by = warp.clocks[lane][instance.entry];
        if (by->value() < instance.done)
          break;
      }
    return isKnown(warp, second.lanes, instance.entry, instance.done) ? Gap::None : Gap::Incomplete;
  }
  if (instance.done == Event::kNever)
    return Gap::Incomplete;
  return missingOrder(second, first, by);
}

Gap Execution::missingOrder(const Coming &second, const Earlier &first, Known *by) const {
  const Warp &warp = second.warp;
  const unsigned done = first.instance.done;
  const bool isInit = first.rival.ask == Rival::Ask::InitFence,
             isFence = isInit || first.rival.ask == Rival::Ask::ProxyFence;
  const bool isSameWarp = first.agent == warp.agent;
  const Layer layer = isInit ? Layer::Initialised : Layer::AsyncProxy;
  const unsigned ownFence = isInit ? warp.initFence : warp.asyncFence;
  const bool speaksForAll = second.lanes == kAllLanes && warp.clocks.areOne() && !isSameWarp;
  for (unsigned lane = 0; lane < (speaksForAll ? 1 : 2); ++lane)
    for (unsigned firstLane = 0; firstLane < 2; ++firstLane) {
      if (!(second.lanes >> lane & 1) || !(first.instance.lanes >> firstLane & 1))
        continue;
      if (first.isSameThread && lane != firstLane)
        continue;
      const unsigned agent = 2 * first.agent + firstLane;
      const bool isItself = isSameWarp && lane == firstLane && (lane == 0 || first.isSameThread);
      const Clock &clock = warp.clocks[lane];
      if (!isItself) {
        const unsigned entry = shape.of(Layer::Performed, agent);
        if (by)
          *by = clock[entry];
        if (clock.value(entry) <= done)
          return Gap::Unordered;
      }
      if (isFence && (isItself ? ownFence : clock.value(shape.of(layer, agent))) <= done)
        return isInit ? Gap::InitFence : Gap::ProxyFence;
    }
  return Gap::None;
}

/// That two accesses are in order is told once, and again where they are closer together.
bool Execution::isNews(const Rival &rival, int64_t distance) {
  const bool isCloser = distance < told[rival.number];
  told[rival.number] = std::min(told[rival.number], distance);
  return isCloser;
}

void Execution::remember(const Coming &second, const Earlier &first) {
  met.add({first.instance.event, timelineOf[first.agent], plan.placeOf(first.rival.access)},
          {second.warp.event, timelineOf[second.warp.agent], plan.placeOf(second.access.index)});
}

void Execution::compare(const Coming &second, const Earlier &first) {
  remember(second, first);
  const Gap gap = missing(second, first, nullptr);
  int64_t distance = 0;
  const bool isFar = llvm::SubOverflow(second.position, first.instance.position, distance);
  if (gap == Gap::None && !isFar && !isNews(first.rival, distance))
    return;
  Known by;
  missing(second, first, &by);
  const Access &access = plan.accesses()[first.rival.access];
  observer.meet(access, second.access, first.instance.position, second.position,
                gap == Gap::None ? std::string() : fagen::textOf(gap, access), by);
}

/// In the memory of one CTA, where warps of all CTAs may have been before. Threads of one number in two CTAs are two.
void Execution::checkAgainst(const Coming &second, unsigned memory, const Rival &rival) {
  const Instance *instance = &state.instances[memory * plan.instances() + rival.instance];
  for (unsigned cta = 0, ctas = plan.ctas; cta < ctas; ++cta, instance += rival.ctaStep) {
    if (instance->lanes == 0)
      continue;
    const bool isSameCta = cta == second.warp.cta;
    if (isSameCta || !isOfOneTile(plan.accesses()[rival.access], second.access, instance->position, second.position))
      compare(second, {rival, *instance, cta * plan.ctaWarps + rival.warp, isSameCta && rival.isSameThread});
  }
}

/// Who reads a position must find what was written for it. If that holds in this order of execution and accesses are in
/// order, it holds in every order.
void Execution::checkFilled(const Warp &warp, const Access &access, int64_t position) {
  const unsigned slot = plan.tileSlotOf(access, position);
  if (slot == ExecutionPlan::kNoTile)
    return;
  const Filled &filled = state.filled[warp.cta * plan.tileSlots() + slot];
  if (filled.by && filled.position == position)
    return;
  const std::string what = "reads position " + std::to_string(position) + " of %" + access.buffer->name;
  observer.misread(*access.op, !filled.by ? what + ", which nothing has written"
                                          : what + ", whose slot holds position " + std::to_string(filled.position) +
                                                ", which " + observer.nameOf(filled.by) + " has written");
}

void Execution::checkAccesses(Warp &warp, const Event &event, const PlannedOp &op, Lanes lanes) {
  for (const Access *access : op.accesses) {
    const Access &second = *access;
    const int64_t position = event.positions[second.operand];
    if (second.reads)
      checkFilled(warp, second, position);
    const llvm::ArrayRef<Rival> rivals = plan.rivalsOf(second, position, warp.number);
    told.resize(plan.rivalNumbers(), std::numeric_limits<int64_t>::max());
    Coming coming{warp, second, position, lanes};
    if (!op.isShared) {
      for (const Rival &rival : rivals)
        checkAgainst(coming, warp.cta, rival);
      continue;
    }
    for (const Rival &rival : rivals)
      for (unsigned cta = 0; cta < plan.ctas; ++cta) {
        coming.lanes = lanesFor(op, lanes, cta);
        checkAgainst(coming, cta, rival);
      }
  }
}

void Execution::remember(Warp &warp, const Event &event, const PlannedOp &op, Lanes lanes) {
  const Role &role = *plan.roles()[warp.role];
  const unsigned ofWarp = warp.cta * role.warps + warp.number - role.firstWarp;
  for (const Access *access : op.accesses)
    for (auto [cta, end] = ctasOf(warp, op); cta < end; ++cta) {
      const int64_t position = event.positions[access->operand];
      if (const unsigned slot = plan.tileSlotOf(*access, position); access->writes && slot != ExecutionPlan::kNoTile)
        state.filled[cta * plan.tileSlots() + slot] = {access->op, position};
      Instance &last = state.instances[cta * plan.instances() + plan.instanceOf(*access, position) + ofWarp];
      last = {position, 0, lanesFor(op, lanes, cta), warp.event, warp.event};
      if (!access->isAsync)
        continue;
      switch (op.sync.done) {
      case Means::Phases:
        last.entry = shape.slot(numberOf(slotOf(cta, op, event)));
        last.done = unsigned(phaseOf(op, event) + 1);
        break;
      case Means::ProductGroups:
        last.entry = shape.products(warp.agent);
        last.done = warp.products + 1;
        break;
      case Means::StoreGroups:
        last.entry = shape.stores(warp.agent);
        last.done = warp.stores + 1;
        break;
      default:
        last.done = event.doneAt;
      }
    }
}
