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

/// What says that an asynchronous access is complete.
static std::string completionOf(const Op &op) {
  switch (syncOf(op).done) {
  case Means::ProductGroups:
    return "mma_wait";
  case Means::StoreGroups:
    return "bulk_wait";
  case Means::Phases:
    return "wait for its phase of %" + CopyIssueOp(op).full().buffer->name;
  default:
    return "copy_wait";
  }
}

std::string Execution::textOf(Gap gap, const Access &first) {
  switch (gap) {
  case Gap::None:
    return {};
  case Gap::Incomplete:
    return "no " + completionOf(*first.op) + " says that the first is complete";
  case Gap::Unordered:
    return "nothing orders the two";
  case Gap::InitFence:
    return "no fence of kind mbarrier_init between";
  case Gap::ProxyFence:
    return "no fence of kind async_proxy between";
  case Gap::ProductFence:
    return "no fence of kind mma between";
  }
  return {};
}

/// None if the lanes know that the instance is done, and may follow it; `by` is then what told the first of them.
Execution::Gap Execution::missing(const Coming &second, const Access &first, unsigned firstAgent,
                                  const Instance &instance, bool isSameThread, Known &by) const {
  const Warp &warp = second.warp;
  const bool isOfFragment = second.access.buffer->space == Space::Fragment;
  if (isOfFragment && first.isAsync && second.access.isAsync)
    return Gap::None; // products of a group of warps follow each other
  if (instance.entry != 0) {
    for (unsigned lane = 0; lane < 2; ++lane)
      if (second.lanes >> lane & 1) {
        by = warp.clocks[lane][instance.entry];
        if (by.value() < instance.done)
          return Gap::Incomplete;
      }
    return Gap::None;
  }
  if (instance.done == Event::kNever)
    return Gap::Incomplete;
  if (isOfFragment && second.access.isAsync)
    return warp.mmaFence > instance.done ? Gap::None : Gap::ProductFence;
  const bool isProxyCrossed =
      second.access.isByAsyncProxy && !first.isByAsyncProxy && first.needsFence != Means::Nothing;
  const bool isInit = first.needsFence == Means::InitFence;
  const Layer layer = isInit ? Layer::Initialised : Layer::AsyncProxy;
  const unsigned ownFence = isInit ? warp.initFence : warp.asyncFence;
  for (unsigned lane = 0; lane < 2; ++lane)
    for (unsigned firstLane = 0; firstLane < 2; ++firstLane) {
      if (!(second.lanes >> lane & 1) || !(instance.lanes >> firstLane & 1))
        continue;
      const unsigned agent = 2 * firstAgent + firstLane;
      if (isSameThread && lane != firstLane)
        continue;
      const bool isItself = firstAgent == warp.agent && lane == firstLane && (lane == 0 || isSameThread);
      const Clock &clock = warp.clocks[lane];
      if (!isItself) {
        by = clock[shape.of(Layer::Performed, agent)];
        if (by.value() <= instance.done)
          return Gap::Unordered;
      }
      if (isProxyCrossed && (isItself ? ownFence : clock.value(shape.of(layer, agent))) <= instance.done)
        return isInit ? Gap::InitFence : Gap::ProxyFence;
    }
  return Gap::None;
}

/// That two accesses are in order is told once, and again where they are closer together.
bool Execution::isNews(const Rival &rival, int64_t distance) {
  if (rival.number >= told.size())
    told.resize(rival.number + 1, std::numeric_limits<int64_t>::max());
  const bool isCloser = distance < told[rival.number];
  told[rival.number] = std::min(told[rival.number], distance);
  return isCloser;
}

void Execution::compare(const Coming &second, const Rival &rival, const Access &first, unsigned firstAgent,
                        const Instance &instance, bool isSameThread) {
  Known by;
  const Gap gap = missing(second, first, firstAgent, instance, isSameThread, by);
  int64_t distance = 0;
  const bool isFar = llvm::SubOverflow(second.position, instance.position, distance);
  if (gap != Gap::None || isFar || isNews(rival, distance))
    observer.meet(first, second.access, instance.position, second.position,
                  gap == Gap::None ? std::string() : textOf(gap, first), by);
}

/// In the memory of one CTA, where warps of all CTAs may have been before. Threads of one number in two CTAs are two.
void Execution::checkAgainst(const Coming &second, unsigned memory, const Rival &rival) {
  const Instance *instance = &state.instances[memory * plan.instances() + rival.instance];
  for (unsigned cta = 0; cta < plan.ctas; ++cta, instance += rival.ctaStep) {
    if (instance->lanes == 0)
      continue;
    const Access &first = plan.accesses()[rival.access];
    const bool isSameCta = cta == second.warp.cta;
    if (isSameCta || !isOfOneTile(first, second.access, instance->position, second.position))
      compare(second, rival, first, cta * plan.ctaWarps + rival.warp, *instance, isSameCta && rival.isSameThread);
  }
}

void Execution::checkAccesses(Warp &warp, const Event &event, const PlannedOp &op, Lanes lanes) {
  for (const Access &second : op.accesses) {
    const int64_t position = event.positions[second.operand];
    for (const Rival &rival : plan.rivalsOf(second, position, warp.number))
      for (auto [cta, end] = ctasOf(warp, op); cta < end; ++cta)
        checkAgainst({warp, second, position, lanesFor(op, lanes, cta)}, cta, rival);
  }
}

void Execution::remember(Warp &warp, const Event &event, const PlannedOp &op, Lanes lanes) {
  const Role &role = *plan.roles()[warp.role];
  const unsigned ofWarp = warp.cta * role.warps + warp.number - role.firstWarp;
  for (const Access &access : op.accesses)
    for (auto [cta, end] = ctasOf(warp, op); cta < end; ++cta) {
      const int64_t position = event.positions[access.operand];
      Instance &last = state.instances[cta * plan.instances() + plan.instanceOf(access, position) + ofWarp];
      last = {position, 0, lanesFor(op, lanes, cta), warp.event};
      if (!access.isAsync)
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
