// fagen: the end of an execution: who waits for ever, and what nobody waits for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Execution.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

std::string Execution::whatFor(const Warp &warp) const {
  const Event &event = eventOf(warp);
  const PlannedOp &op = plan.op(warp.role, event.point);
  if (isBarrier(op.sync.acquires)) {
    const Barrier &barrier = state.barriers[idOf(warp, op)];
    return "for " + std::to_string(barrier.expected - barrier.arrived) + " more of the " +
           std::to_string(barrier.expected) + " warps of its barrier";
  }
  const Slot &slot = slotOf(warp.cta, op, event);
  std::string text = "for " + textOf(slot, phaseOf(op, event));
  if (slot.phase() != phaseOf(op, event))
    return text + ", while phase " + std::to_string(slot.phase()) + " is not complete";
  text += ", which has " + std::to_string(slot.arrived) + " of " + std::to_string(slot.needed) + " arrivals";
  if (slot.announced != 0 || slot.copied != 0)
    text += " and " + std::to_string(slot.copied) + " of " + std::to_string(slot.announced) + " B";
  return text;
}

/// Nobody can go on: who waits for what, a warp for each role, or for each group where groups differ.
void Execution::reportHang() {
  std::string message;
  const Op *first = nullptr;
  unsigned last = ~0u;
  for (const Warp &warp : state.warps) {
    const unsigned timeline = warp.cta * unsigned(timelines.size()) + warp.timeline; // of each CTA its own
    if (isAtEnd(warp) || timeline == last)
      continue;
    last = timeline;
    const Op *op = eventOf(warp).op;
    first = first ? first : op;
    message += (message.empty() ? "the roles wait for ever: " : "; ") + observer.nameOf(op) + ofCta(warp.cta) + " " +
               whatFor(warp);
  }
  fail(*first, message);
}

/// What nobody waits for any more.
void Execution::checkEnd() {
  for (const Slot &slot : state.slots)
    checkSlotAtEnd(slot);
  for (unsigned id = 0; id < state.barriers.size(); ++id)
    if (state.barriers[id].arrived != 0)
      return fail(*state.barriers[id].last, "at the end " + nameOfBarrier(id) + " has " +
                                                std::to_string(state.barriers[id].arrived) + " of " +
                                                std::to_string(state.barriers[id].expected) + " warps");
  for (const Warp &warp : state.warps)
    if (warp.lastStore && (warp.hasOpenStores || !isKnown(warp, kFirstLane, shape.stores(warp.agent), warp.stores)))
      return fail(*warp.lastStore, "role " + plan.roles()[warp.role]->name +
                                       " may end before its bulk_stores have read their source: no bulk_wait says so");
  checkRemoteAtEnd();
}

/// Only its own CTA's warps keep it there.
void Execution::checkSlotAtEnd(const Slot &slot) {
  auto knows = [&](const Warp &warp) {
    return warp.cta == slot.cta && isKnown(warp, kFirstLane, shape.slot(numberOf(slot)), slot.lastCopyPhase + 1);
  };
  if (slot.lastCopy && llvm::none_of(state.warps, knows))
    return fail(*slot.lastCopy,
                "the CTA may end before the copy has landed: nobody waits for " + textOf(slot, slot.lastCopyPhase));
  if (slot.arrived != 0)
    fail(*slot.lastArrival, "at the end " + textOf(slot, slot.phase()) + " has " + std::to_string(slot.arrived) +
                                " of " + std::to_string(slot.needed) + " arrivals");
}

/// Shared memory is there as long as its CTA: some warp of it must know of whatever others did there.
void Execution::checkRemoteAtEnd() {
  for (unsigned cta = 0; cta < plan.ctas; ++cta)
    for (unsigned agent = 0; agent < 2 * shape.warps; ++agent) {
      const Remote &last = state.remote[cta * 2 * shape.warps + agent];
      auto knows = [&](const Warp &warp) {
        return warp.cta == cta && isKnown(warp, kFirstLane, shape.of(Layer::Performed, agent), last.event + 1);
      };
      if (last.op && llvm::none_of(state.warps, knows))
        return fail(*last.op, "CTA " + std::to_string(cta) +
                                  " may end before the arrival there: nobody in it waits for CTA " +
                                  std::to_string(agent / 2 / plan.ctaWarps));
    }
}
