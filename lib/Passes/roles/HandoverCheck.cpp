// fagen: what order-roles needs of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "HandoverCheck.h"

#include "fagen/IR/Queries.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// What order-roles needs of each handover.
class HandoverCheck {
public:
  HandoverCheck(const Handover &handover, const OpPlaces &places, ShapeCheck &shape)
      : handover(handover), places(places), shape(shape), name("%" + handover.first().name) {}

  bool fits() const {
    for (const Buffer *buffer : handover.buffers)
      if (!shape.needs(buffer->isRing == handover.first().isRing && buffer->stages == handover.first().stages,
                       "buffers of as many slots at one mbarrier: " + name + " and %" + buffer->name, buffer->location))
        return false;
    for (const HandoverSite &fills : handover.fills)
      for (const HandoverUse &fill : fills)
        if (!isInPlace(fill) || !isFill(fill))
          return false;
    for (const HandoverUser &user : handover.users)
      for (const HandoverSite &site : user.sites)
        if (!llvm::all_of(site, [&](const HandoverUse &use) { return isInPlace(use) && isUse(use); }) ||
            !shape.needs(!handover.first().isRing || completionOf(site, places).at,
                         "a wait that says when role " + user.role->name + " has left " + name,
                         site.front().op->location))
          return false;
    return true;
  }

private:
  /// Each step of the loop around has a position of its own; what has none is filled once.
  bool isInPlace(const HandoverUse &use) const {
    if (!use.position)
      return shape.needs(use.anchor == places.standing(*use.op) || !writes(use), "a ring where a loop fills " + name,
                         use.op->location);
    const Op *const around = places.of(*use.op).around;
    return shape.needs(!around || (around->kind == OpKind::Loop && use.position.uses(LoopOp(*around).variable())),
                       "uses of " + name + " outside of ifs, and at positions that grow with the loop",
                       use.op->location);
  }

  bool isFill(const HandoverUse &fill) const {
    const Means done = fill.sync().done;
    const bool isKnown =
        done == Means::Phases || done == Means::CopyGroups || (done == Means::Nothing && fill.isByLanes());
    return shape.needs(isKnown && done == handover.filledBy(),
                       "bulk copies, or cp_async copies, or threads, that fill " + name + " for other roles",
                       fill.op->location);
  }

  bool isUse(const HandoverUse &use) const {
    const bool isOfThreads = use.isByLanes() && use.sync().done == Means::Nothing;
    const bool isRewritten = isOfThreads && handover.users.size() == 1 && !writes(use, Effect::Write);
    return shape.needs(!writes(use) || isRewritten, "one role that fills " + name, use.op->location) &&
           shape.needs(isOfThreads || use.sync().done == Means::ProductGroups, "products, or threads, that use " + name,
                       use.op->location);
  }

  /// Any of the buffers; what it does not read, where it only writes.
  bool writes(const HandoverUse &use, std::optional<Effect> only = {}) const {
    const llvm::ArrayRef<OperandInfo> operands = opInfo(use.op->kind).operands;
    for (unsigned i = 0; i < use.op->operands.size(); ++i)
      if (operands[i].writes() && (!only || operands[i].effect == *only) &&
          llvm::is_contained(handover.buffers, use.op->operands[i].buffer))
        return true;
    return false;
  }

  const Handover &handover;
  const OpPlaces &places;
  ShapeCheck &shape;
  const std::string name;
};

bool isAtMbarrier(const Op &op) {
  const SyncInfo &sync = syncOf(op);
  return sync.releases == Means::Phases || sync.acquires == Means::Phases || sync.needsFence == Means::InitFence;
}

/// The first op that uses shared memory that nobody fills.
const Op *findUnfilled(const Kernel &kernel) {
  llvm::SmallPtrSet<const Buffer *, 8> filled;
  const Op *unfilled = nullptr;
  auto visit = [&](const Op &op, bool looks) {
    for (unsigned i = 0; i < op.operands.size(); ++i) {
      const Buffer *const buffer = op.operands[i].buffer;
      if (!buffer || buffer->space != Space::Shared || buffer->type == ElementType::MBarrier)
        continue;
      if (opInfo(op.kind).operands[i].writes())
        filled.insert(buffer);
      else if (looks && !unfilled && !filled.contains(buffer))
        unfilled = &op;
    }
  };
  for (const bool looks : {false, true})
    for (const Role &role : kernel.roles)
      walk(role.body, [&](const Op &op) { visit(op, looks); });
  return unfilled;
}

/// A buffer that an asynchronous copy fills and no op reads: nobody would wait for its bytes.
const Buffer *findUnread(const Kernel &kernel) {
  llvm::SmallPtrSet<const Buffer *, 8> read;
  auto forEachTile = [&](llvm::function_ref<void(const Op &, const Buffer &, bool)> visit) {
    for (const Role &role : kernel.roles)
      walk(role.body, [&](const Op &op) {
        for (unsigned i = 0; i < op.operands.size(); ++i)
          if (const Buffer *const buffer = op.operands[i].buffer; buffer && buffer->space == Space::Shared)
            visit(op, *buffer, opInfo(op.kind).operands[i].effect == Effect::Write);
      });
  };
  forEachTile([&](const Op &, const Buffer &buffer, bool isWrite) {
    if (!isWrite)
      read.insert(&buffer);
  });
  const Buffer *unread = nullptr;
  forEachTile([&](const Op &op, const Buffer &buffer, bool isWrite) {
    if (!unread && isWrite && (isBulkCopy(op) || isThreadAsyncCopy(op)) && !read.contains(&buffer))
      unread = &buffer;
  });
  return unread;
}

} // namespace

bool fagen::canOrder(const Kernel &kernel, llvm::ArrayRef<Handover> handovers, const OpPlaces &places,
                     ShapeCheck &shape) {
  bool isInOrder = false;
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) { isInOrder |= isAtMbarrier(op); });
  const Op *const unfilled = findUnfilled(kernel);
  const Buffer *const unread = findUnread(kernel);
  return shape.needs(!isInOrder, "roles that no mbarrier orders yet") &&
         shape.needs(!unfilled, "shared memory that some role fills before others use it",
                     unfilled ? unfilled->location : Location()) &&
         shape.needs(!unread, "some op that reads %" + llvm::Twine(unread ? unread->name : "") + ", which copies fill",
                     unread ? unread->location : Location()) &&
         llvm::all_of(handovers,
                      [&](const Handover &handover) { return HandoverCheck(handover, places, shape).fits(); });
}
