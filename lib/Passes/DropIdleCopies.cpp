// fagen: pass drop-idle-copies: removes copies that no problem ever issues.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// pipeline-loads gives every loop the same copies ahead, guarded by `when`. In a loop that only the last tiles reach,
// such as that of masked tiles, the guard of some is false in every run: the timelines show which. Needs positions and
// guards as they will stay. Ensures that each copy is issued by some problem; their groups stay committed, so that
// waits count as before. It stands right after pipeline-loads, because accesses and hazards of a copy that never
// happens would only cost barriers.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "fagen/Analysis/Timeline.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

static bool isGuardedCopy(const Op &op) { return op.kind == OpKind::CopyIssue && op.has(Attr::When); }

/// Removes copies that are not in `issued`, in nested bodies too.
static bool dropFrom(Block &block, const llvm::DenseSet<const Op *> &issued) {
  bool changed = false;
  for (std::unique_ptr<Op> &op : block.ops)
    changed |= dropFrom(op->body, issued);
  const size_t before = block.ops.size();
  llvm::erase_if(block.ops,
                 [&](const std::unique_ptr<Op> &op) { return isGuardedCopy(*op) && !issued.contains(op.get()); });
  return changed || block.ops.size() != before;
}

bool fagen::dropIdleCopies(Kernel &kernel, PassContext &) {
  bool changed = false;
  for (Role &role : kernel.roles) {
    bool hasGuards = false;
    walk(role.body, [&](const Op &op) { hasGuards |= isGuardedCopy(op); });
    if (!hasGuards)
      continue;
    llvm::DenseSet<const Op *> issued;
    std::string problem; // place-barriers reports what cannot be analysed
    const Points points(role);
    const bool isKnown = forEachTimeline(kernel, role, points, problem, [&](const Timeline &timeline) {
      for (const Event &event : timeline.events)
        if (event.op && event.active)
          issued.insert(event.op);
    });
    if (isKnown)
      changed |= dropFrom(role.body, issued);
  }
  return changed;
}
