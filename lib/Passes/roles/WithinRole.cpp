// fagen: places barriers between warps of a role, where one writes shared memory that others read.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   loop j     barrier named         the products of the step before have read %ds
//              stage_output %ds      each warp its rows
//              fence async_proxy
//              barrier named         they are there
//              mma_issue ... %ds     all rows
//
// A ring with several slots needs the second barrier alone: a slot is written again when others have been since. Bodies
// of loops are gone through twice, for what a step finds of the one before. When reads end, and whether that is early
// enough, is for the proof to say.
//
// What threads of the role copy by cp_async for it alone they wait for there, too.

#include "WithinRole.h"

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <utility>

using namespace fagen;
using namespace fagen::ir;

const Op *fagen::beforeProducts(const Op &op, const OpPlaces &places) {
  const OpPlaces::Place &place = places.of(op);
  size_t first = place.index;
  while (first > 0 && place.block->ops[first - 1]->kind == OpKind::MmaIssue)
    --first;
  if (first > 0 && syncOf(*place.block->ops[first - 1]).releases == Means::ProductFence)
    return place.block->ops[first - 1].get();
  return &op;
}

namespace {

class RoleScan {
public:
  RoleScan(const Kernel &kernel, const Role &role, int64_t barrier, const OpPlaces &places,
           std::map<const Op *, Ops> &before)
      : role(role), barrier(barrier), places(places), before(before) {
    for (const Role &other : kernel.roles)
      if (&other != &role)
        walk(other.body, [&](const Op &op) {
          for (const Operand &operand : op.operands)
            ofOthers.insert(operand.buffer);
        });
    walk(role.body, [&](const Op &op) {
      for (unsigned i = 0; i < op.operands.size(); ++i)
        if (isWrite(op, i))
          ofThreads.insert(op.operands[i].buffer);
    });
  }

  /// Whether there are barriers.
  bool run() {
    scan(role.body);
    return hasPlaced;
  }

private:
  /// Of shared memory, by threads, or by copies of theirs that no other role waits for.
  bool isWrite(const Op &op, unsigned operand) const {
    const Buffer *const buffer = op.operands[operand].buffer;
    const SyncInfo &sync = syncOf(op);
    return buffer && buffer->space == Space::Shared && buffer->type != ElementType::MBarrier &&
           opInfo(op.kind).operands[operand].writes() && !sync.isByActor &&
           (sync.done == Means::Nothing ? sync.agent == Agent::Threads
                                        : sync.done == Means::CopyGroups && !ofOthers.contains(buffer));
  }

  void scan(const Block &block) {
    for (const std::unique_ptr<Op> &op : block.ops) {
      come(*op);
      for (unsigned turn = 0; turn < (op->kind == OpKind::Loop ? 2 : 1); ++turn)
        scan(op->body);
    }
  }

  void come(const Op &op) {
    if (op.kind == OpKind::Barrier && BarrierOp(op).scope() != BarrierScope::Warp)
      return meet();
    if (syncOf(op).acquires == Means::CopyGroups)
      areOnTheirWay = false;
    bool isReadUnseen = false, overwrites = false;
    for (unsigned i = 0; i < op.operands.size(); ++i) {
      const Buffer *const buffer = op.operands[i].buffer;
      if (!buffer || !ofThreads.contains(buffer))
        continue;
      isReadUnseen |= !isWrite(op, i) && written.contains(buffer);
      overwrites |= isWrite(op, i) && read.contains(buffer) && !(buffer->isRing && buffer->stages.number() > 1);
    }
    if (isReadUnseen || overwrites)
      place(op, isReadUnseen && syncOf(op).agent != Agent::Threads);
    for (unsigned i = 0; i < op.operands.size(); ++i)
      if (const Buffer *const buffer = op.operands[i].buffer; buffer && ofThreads.contains(buffer))
        (isWrite(op, i) ? written : read).insert(buffer);
    areOnTheirWay |= isThreadAsyncCopy(op) && !ofOthers.contains(op.operands.front().buffer);
  }

  void meet() {
    written.clear();
    read.clear();
  }

  void place(const Op &op, bool needsFence) {
    Ops ops;
    if (std::exchange(areOnTheirWay, false)) {
      ops.push_back(makeCopyCommit({.location = op.location}));
      ops.push_back(makeCopyWait(
          {.pending = 0, .location = op.location, .note = "order-roles: what the thread copied is there"}));
    }
    if (needsFence)
      ops.push_back(makeFence({.kind = FenceKind::AsyncProxy,
                               .location = op.location,
                               .note = "order-roles: products read what threads wrote"}));
    ops.push_back(makeBarrier({.scope = BarrierScope::Named,
                               .id = barrier,
                               .firstWarp = role.firstWarp,
                               .warps = role.warps,
                               .location = op.location,
                               .note = "order-roles: what the role's warps write and read for each other"}));
    before.try_emplace(beforeProducts(op, places), std::move(ops));
    hasPlaced = true;
    meet();
  }

  const Role &role;
  const int64_t barrier;
  const OpPlaces &places;
  std::map<const Op *, Ops> &before;
  llvm::SmallPtrSet<const Buffer *, 4> ofThreads;     ///< that threads of the role write
  llvm::SmallPtrSet<const Buffer *, 8> ofOthers;      ///< that other roles name
  llvm::SmallPtrSet<const Buffer *, 4> written, read; ///< since its warps met last
  bool areOnTheirWay = false;                         ///< copies of threads
  bool hasPlaced = false;
};

} // namespace

/// Numbers that groups of warps may meet by (kGroupBarrier) are left to them.
std::map<const Op *, Ops> fagen::barriersWithinRoles(Kernel &kernel, const OpPlaces &places) {
  std::map<const Op *, Ops> before;
  int64_t barrier =
      std::max(firstFreeBarrier(kernel), kGroupBarrier + int64_t(kernel.threads / (kLanes * kGroupWarps)));
  for (const Role &role : kernel.roles)
    barrier += RoleScan(kernel, role, barrier, places, before).run();
  return before;
}
