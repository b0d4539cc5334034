// fagen: barriers in an execution: those of the CTA, of the cluster, of named warps and of groups that take turns.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Execution.h"

using namespace fagen;
using namespace fagen::ir;

/// False: others are still to come.
bool Execution::comeToBarrier(Warp &warp, const PlannedOp &op, bool isFirstTry) {
  if (op.sync.releases == Means::WarpBarrier) {
    meetLanes(warp, op, /*isMemoryToo=*/true);
    return true;
  }
  if (isFirstTry && !arriveAtBarrier(warp, op))
    return true; // nobody has come, so there is nothing to wait for
  return op.sync.acquires == Means::Nothing || !isBlocked(warp, op);
}

bool Execution::isBlocked(Warp &warp, const PlannedOp &op) {
  const unsigned id = idOf(warp, op);
  if (state.barriers[id].generations < warp.generations[id])
    return true;
  acquire(warp, kAllLanes, state.barriers[id].complete, op);
  return false;
}

/// Of each CTA the first is the CTA's own.
unsigned Execution::idOf(const Warp &warp, const PlannedOp &op) const {
  if (op.sync.releases == Means::ClusterBarrier)
    return plan.barriers() - 1;
  const unsigned first = warp.cta * ClockShape::kBarriers;
  if (op.sync.releases == Means::CtaBarrier)
    return first;
  if (op.sync.releases == Means::Turns) { // who only passes it on arrives where the next one waits
    const unsigned group = (warp.number - plan.roles()[warp.role]->firstWarp) / ClockShape::kGroupWarps;
    return first + op.id + (group + (op.sync.acquires == Means::Nothing)) % op.groups;
  }
  const unsigned index = warp.number - std::min(warp.number, op.firstWarp);
  return first + std::min(op.id + (op.isInterleaved ? index % op.groups : index / (op.warps / op.groups)),
                          ClockShape::kBarriers - 1);
}

std::string Execution::nameOfBarrier(unsigned id) const {
  if (plan.ctas > 1 && id == plan.barriers() - 1)
    return "the barrier of the cluster";
  return "barrier " + std::to_string(id % ClockShape::kBarriers) + ofCta(id / ClockShape::kBarriers);
}

bool Execution::arriveAtBarrier(Warp &warp, const PlannedOp &op) {
  if (warp.number < op.firstWarp || warp.number >= op.firstWarp + op.warps) {
    fail(*op.op, "the barrier waits for warps " + std::to_string(op.firstWarp) + " to " +
                     std::to_string(op.firstWarp + op.warps) + "; warp " + std::to_string(warp.number) + " of role " +
                     plan.roles()[warp.role]->name + " is none of them");
    return false;
  }
  const unsigned id = idOf(warp, op);
  const Means means = op.sync.releases;
  const unsigned expected = means == Means::Turns            ? 2 * ClockShape::kGroupWarps
                            : means == Means::ClusterBarrier ? shape.warps
                                                             : op.warps / op.groups;
  Barrier &barrier = state.barriers[id];
  const unsigned generation = warp.generations[id]++;
  // Where others made generations without this warp, it knows as little of them.
  if (generation != barrier.generations || !isKnown(warp, kAllLanes, shape.barrier(id), generation)) {
    fail(*op.op, "the arrival may count among those before it at " + nameOfBarrier(id) +
                     ": nothing tells the warp that those are complete");
    return false;
  }
  if (barrier.arrived == 0)
    barrier.expected = expected;
  if (barrier.expected != expected) {
    fail(*op.op, "at " + nameOfBarrier(id) + " others wait for " + std::to_string(barrier.expected) +
                     " warps, this op for " + std::to_string(expected));
    return false;
  }
  barrier.last = op.op;
  release(barrier.gathered, warp, kAllLanes, op);
  if (++barrier.arrived < barrier.expected)
    return true;
  barrier.gathered.raise(shape.barrier(id), ++barrier.generations, op.number);
  barrier.complete = barrier.gathered;
  barrier.gathered.clear();
  barrier.arrived = 0;
  return true;
}
