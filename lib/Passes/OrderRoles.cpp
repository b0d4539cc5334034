// fagen: pass order-roles: who waits for whom at which mbarrier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers that one role fills for others have an mbarrier that says that a position is filled; rings have a second one,
// `_empty`, that says that all have left it. Rings whose copies name the same mbarrier share both. From the order of
// fills and uses (Handovers.h) follows
//
//   load   wait    k_empty[j - S]  by one thread: everybody has left the slot's last tile
//          arrive  k_full[j]       announces the bytes of all copies there
//          copy_issue k[j]
//   math   wait    k_full[j]       before the first op that uses k[j]
//          mma_issue ... k[j]
//          mma_wait
//          arrive  k_empty[j]      after the op that says that the last use is done
//
// Where threads fill, all of them wait, and all arrive after what they wrote. A slot is left by one thread of each
// group where only products of groups use it, else by one of each warp, after a barrier of the warp where lanes do. A
// use that is done d steps later is left d steps later, those of the last steps after the loop.
//
// One thread makes the mbarriers, and a barrier of the CTA tells all. place-barriers and verify-barriers then prove
// from the ops alone that this orders every access and that nobody waits for ever.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "Handovers.h"
#include "ShapeCheck.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <map>

using namespace fagen;
using namespace fagen::ir;

namespace {

unsigned arrivalsOf(const Role &role, Actor by) {
  switch (by) {
  case Actor::Thread:
    return kLanes * role.warps;
  case Actor::Warp:
    return role.warps;
  case Actor::Group:
    return role.warps / kGroupWarps;
  case Actor::Role:
    return 1;
  }
  return 1;
}

bool isByLanes(const HandoverUse &use) { return use.isByLanes(); }

class RoleOrderer {
public:
  RoleOrderer(Kernel &kernel, std::vector<Handover> handovers, const OpPlaces &places)
      : kernel(kernel), handovers(std::move(handovers)), places(places) {}

  void run() {
    for (Handover &handover : handovers) {
      addGuard(handover);
      for (const HandoverSite &fills : handover.fills)
        fill(handover, fills);
      for (const HandoverUser &user : handover.users)
        for (const HandoverSite &site : user.sites)
          use(handover, site);
    }
    begin();
    for (Role &role : kernel.roles)
      place(role.body);
  }

private:
  // Mbarriers.

  Buffer *addBarrier(const Buffer &buffer, llvm::StringRef suffix, const Location &location) {
    Buffer bar;
    bar.name = kernel.freshName(buffer.name + suffix.str());
    bar.type = ElementType::MBarrier;
    bar.rows = bar.columns = 1;
    bar.isRing = buffer.isRing;
    bar.stages = buffer.stages;
    bar.location = location;
    return &kernel.addBuffer(std::move(bar));
  }

  void addGuard(Handover &handover) {
    const Buffer &buffer = handover.first();
    if (!handover.full)
      handover.full = addBarrier(buffer, "_full", buffer.location);
    Guard guard{.full = handover.full, .filledBy = {}};
    if (!handover.isBulk())
      guard.filledBy = Actor::Thread;
    if (buffer.isRing) {
      guard.empty = emptyOf(buffer) ? emptyOf(buffer) : addBarrier(buffer, "_empty", handover.full->location);
      guard.leftBy = handover.hasUse(isByLanes) ? Actor::Warp : Actor::Group;
    }
    for (Buffer *each : handover.buffers)
      each->guard = guard;
  }

  static const Guard &guardOf(const Handover &handover) { return *handover.first().guard; }

  // Fills.

  /// By name where a constant says how many there are.

  /// The first fill of a position waits and announces all bytes; after the last one threads tell.
  void fill(const Handover &handover, const HandoverSite &fills) {
    const Op &op = *fills.front().op;
    const Expr &position = fills.front().position;
    const Guard &guard = guardOf(handover);
    const Actor by = guard.filledBy.value_or(Actor::Role);
    if (guard.empty)
      before[&op].push_back(makeWait({.bar = {guard.empty, position - handover.first().stages.expr()},
                                      .by = by,
                                      .location = op.location,
                                      .note = "order-roles: everybody has left the slot"}));
    if (!handover.isBulk())
      return tell(handover, fills.back());
    int64_t bytes = 0;
    for (const HandoverUse &fill : fills)
      bytes += int64_t(CopyIssueOp(*fill.op).dst().buffer->stageBytes());
    before[&op].push_back(
        makeArrive({.bar = {guard.full, position}, .by = by, .bytes = constant(bytes), .location = op.location}));
  }

  void tell(const Handover &handover, const HandoverUse &fill) {
    Ops &ops = behind[fill.op];
    if (handover.hasUse([](const HandoverUse &use) { return !use.isByLanes(); }))
      ops.push_back(makeFence({.kind = FenceKind::AsyncProxy,
                               .location = fill.op->location,
                               .note = "order-roles: products read what threads wrote"}));
    ops.push_back(makeArrive({.bar = {handover.full, fill.position},
                              .by = Actor::Thread,
                              .location = fill.op->location,
                              .note = "order-roles: the thread has filled its part"}));
  }

  // Uses.

  void use(const Handover &handover, const HandoverSite &site) {
    waitFor(handover, site.front());
    if (guardOf(handover).empty)
      leave(handover, site);
  }

  /// In front of the fence of products, so that nothing comes between that and the products.
  void waitFor(const Handover &handover, const HandoverUse &use) {
    const OpPlaces::Place &place = places.of(*use.anchor);
    size_t first = place.index;
    while (first > 0 && place.block->ops[first - 1]->kind == OpKind::MmaIssue)
      --first;
    const Op *at = use.anchor;
    if (first > 0 && syncOf(*place.block->ops[first - 1]).releases == Means::ProductFence)
      at = place.block->ops[first - 1].get();
    before[at].push_back(makeWait({.bar = {handover.full, use.position},
                                   .by = Actor::Thread,
                                   .location = use.position ? use.op->location : handover.full->location,
                                   .note = "order-roles: the tile has arrived"}));
  }

  void leave(const Handover &handover, const HandoverSite &site) {
    const Expr &position = site.front().position;
    const Completion done = completionOf(site, places);
    if (done.distance == 0)
      return leaveBehind(*done.at, handover, site, position, {});
    const LoopOp loop(*places.of(*site.front().anchor).around);
    auto positionIn = [&](const Expr &step) { return position.substitute(loop.variable(), step); };
    const Expr step = variable(loop.variable()), late = constant(done.distance);
    leaveBehind(*done.at, handover, site, positionIn(step - late), lessEqual(loop.begin() + late, step));
    for (unsigned left = done.distance; left-- > 0;)
      leaveBehind(*done.tail[left], handover, site, positionIn(loop.end() - constant(left + 1)),
                  lessThan(loop.begin() + constant(left), loop.end()));
  }

  void leaveBehind(const Op &at, const Handover &handover, const HandoverSite &site, Expr position,
                   const Expr &condition) {
    const Actor by = guardOf(handover).leftBy;
    const bool isOfLanes = llvm::any_of(site, isByLanes);
    Ops ops;
    if (needsFence(handover, site))
      ops.push_back(makeFence({.kind = FenceKind::AsyncProxy, .location = at.location}));
    if (isOfLanes)
      ops.push_back(makeBarrier(
          {.scope = BarrierScope::Warp, .location = at.location, .note = "order-roles: all lanes have read the slot"}));
    const std::string note = isOfLanes ? "" : ("order-roles: the " + toString(by) + " has left the slot").str();
    ops.push_back(makeArrive(
        {.bar = {guardOf(handover).empty, std::move(position)}, .by = by, .location = at.location, .note = note}));
    if (condition) {
      auto branch = makeIf({.condition = condition, .location = at.location});
      branch->body.ops = std::exchange(ops, {});
      ops.push_back(std::move(branch));
    }
    llvm::move(ops, std::back_inserter(behind[&at]));
  }

  /// Whether bulk copies follow what lanes did.
  static bool needsFence(const Handover &handover, const HandoverSite &site) {
    return handover.isBulk() && llvm::any_of(site, [](const HandoverUse &use) {
             return use.isByLanes() && !use.isFenced() && use.sync().needsFence == Means::AsyncFence;
           });
  }

  // Beginnings.

  static void initialise(Ops &ops, Buffer *bar, unsigned arrivals) {
    for (unsigned slot = 0; slot < bar->stages; ++slot)
      ops.push_back(makeMbarrierInit(
          {.bar = {bar, bar->isRing ? constant(slot) : Expr()}, .arrivals = arrivals, .location = bar->location}));
  }

  /// The role that fills first makes all mbarriers.
  void begin() {
    for (Role &role : kernel.roles) {
      Ops &ops = heads[&role.body];
      if (&role == handovers.front().filler)
        initialiseAll(ops);
      ops.push_back(makeBarrier(
          {.scope = BarrierScope::Cta, .location = kernel.location, .note = "order-roles: the mbarriers are there"}));
    }
  }

  void initialiseAll(Ops &ops) const {
    for (const Handover &handover : handovers)
      initialise(ops, handover.full, arrivalsOf(*handover.filler, guardOf(handover).filledBy.value_or(Actor::Role)));
    for (const Handover &handover : handovers) {
      unsigned arrivals = 0;
      for (const HandoverUser &user : handover.users)
        arrivals += arrivalsOf(*user.role, guardOf(handover).leftBy);
      if (guardOf(handover).empty)
        initialise(ops, guardOf(handover).empty, arrivals);
    }
    ops.push_back(makeFence({.kind = FenceKind::MbarrierInit, .location = kernel.location}));
  }

  void place(Block &body) {
    rewrite(body, [&](std::unique_ptr<Op> op, Ops &ops) {
      const Op *const key = op.get();
      llvm::move(before[key], std::back_inserter(ops));
      ops.push_back(std::move(op));
      llvm::move(behind[key], std::back_inserter(ops));
    });
    ir::insert(body.ops, body.ops.begin(), std::move(heads[&body]));
  }

  Kernel &kernel;
  std::vector<Handover> handovers;
  const OpPlaces &places;
  std::map<const Op *, Ops> before, behind; ///< what is to stand there
  std::map<const Block *, Ops> heads;       ///< of roles
};

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
    return shape.needs(fill.isByLanes() == !handover.isBulk() &&
                           (handover.isBulk() || fill.sync().done == Means::Nothing),
                       "bulk copies, or threads, that fill " + name + " for other roles", fill.op->location);
  }

  bool isUse(const HandoverUse &use) const {
    const bool isOfThreads = use.isByLanes() && use.sync().done == Means::Nothing;
    return shape.needs(!writes(use), "one role that fills " + name, use.op->location) &&
           shape.needs(isOfThreads || use.sync().done == Means::ProductGroups, "products, or threads, that use " + name,
                       use.op->location);
  }

  bool writes(const HandoverUse &use) const {
    const llvm::ArrayRef<OperandInfo> operands = opInfo(use.op->kind).operands;
    for (unsigned i = 0; i < use.op->operands.size(); ++i)
      if (operands[i].writes() && llvm::is_contained(handover.buffers, use.op->operands[i].buffer))
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

/// A buffer that a bulk copy fills and no op reads: nobody would wait for its bytes.
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
    if (!unread && isWrite && isBulkCopy(op) && !read.contains(&buffer))
      unread = &buffer;
  });
  return unread;
}

bool fits(const Kernel &kernel, llvm::ArrayRef<Handover> handovers, const OpPlaces &places, ShapeCheck &shape) {
  bool isInOrder = false;
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) { isInOrder |= isAtMbarrier(op); });
  const Op *const unfilled = findUnfilled(kernel);
  const Buffer *const unread = findUnread(kernel);
  return shape.needs(!isInOrder, "roles that no mbarrier orders yet") &&
         shape.needs(!unfilled, "shared memory that some role fills before others use it",
                     unfilled ? unfilled->location : Location()) &&
         shape.needs(!unread,
                     "some op that reads %" + llvm::Twine(unread ? unread->name : "") + ", which bulk copies fill",
                     unread ? unread->location : Location()) &&
         llvm::all_of(handovers,
                      [&](const Handover &handover) { return HandoverCheck(handover, places, shape).fits(); });
}

} // namespace

bool fagen::orderRoles(Kernel &kernel, PassContext &context) {
  const OpPlaces places(kernel);
  std::vector<Handover> handovers = findHandovers(kernel, places);
  if (handovers.empty())
    return false;
  ShapeCheck shape(kernel, context, "order-roles");
  if (!fits(kernel, handovers, places, shape))
    return false;
  RoleOrderer(kernel, std::move(handovers), places).run();
  return true;
}
