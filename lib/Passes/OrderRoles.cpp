// fagen: pass order-roles: who waits for whom at which mbarrier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Buffers that one role fills for others have an mbarrier that says that a position is filled; rings have a second one,
// `_empty`, that says that all have left it. Rings whose copies name the same mbarrier share both. From the order of
// fills and uses (roles/Handovers.h) follows
//
//   load   wait    k_empty[j - S]  by one thread: everybody has left the slot's last tile
//          arrive  k_full[j]       announces the bytes of all copies there
//          copy_issue k[j]
//   math   wait    k_full[j]       before the first op that uses k[j]
//          mma_issue ... k[j]
//          mma_wait
//          arrive  k_empty[j]      after the op that says that the last use is done
//
// Where threads fill, all of them wait, and all arrive after what they wrote, or when what they copy by cp_async has
// landed (roles/ThreadCopies.h). A slot is left by one thread of each
// group where only products of groups use it, else by one of each warp, after a barrier of the warp where lanes do. A
// use that is done d steps later is left d steps later, those of the last steps after the loop.
//
// One thread makes the mbarriers, and a barrier of the CTA tells all. place-barriers and verify-barriers then prove
// from the ops alone that this orders every access and that nobody waits for ever.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "roles/HandoverCheck.h"
#include "roles/ThreadCopies.h"
#include "roles/WithinRole.h"

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

/// What is made of what it was: by all warps of the role, before others of the role read it (roles/WithinRole.h).
bool rewrites(const HandoverUse &use) {
  const auto map = dynCast<MapOp>(*use.op);
  return map && map->dst().buffer->space == Space::Shared;
}

/// By lanes that nothing else tells of.
bool isByLanes(const HandoverUse &use) { return use.isByLanes() && !rewrites(use); }

class RoleOrderer {
public:
  RoleOrderer(Kernel &kernel, std::vector<Handover> handovers, const OpPlaces &places)
      : kernel(kernel), handovers(std::move(handovers)), places(places), copies(places) {}

  void run() {
    for (Handover &handover : handovers) {
      addGuard(handover);
      for (const HandoverSite &fills : handover.fills)
        fill(handover, fills);
      for (const HandoverUser &user : handover.users)
        for (const HandoverSite &site : user.sites)
          use(handover, site);
    }
    copies.place(after);
    for (auto &[op, ops] : barriersWithinRoles(kernel, places))
      llvm::move(ops, std::back_inserter(before[op]));
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
    if (handover.isOfThreadCopies())
      return copies.add(fills, handover.first().stages, [this, &handover, &last = fills.back()](const Expr &position) {
        return told(handover, last, position);
      });
    if (!handover.isBulk()) {
      llvm::move(told(handover, fills.back(), position), std::back_inserter(after[fills.back().op]));
      return;
    }
    int64_t bytes = 0;
    for (const HandoverUse &fill : fills)
      bytes += int64_t(CopyIssueOp(*fill.op).dst().buffer->stageBytes());
    before[&op].push_back(
        makeArrive({.bar = {guard.full, position}, .by = by, .bytes = constant(bytes), .location = op.location}));
  }

  /// After what threads wrote.
  static Ops told(const Handover &handover, const HandoverUse &fill, const Expr &position) {
    Ops ops;
    if (handover.hasUse([](const HandoverUse &use) { return !use.isByLanes(); }))
      ops.push_back(makeFence({.kind = FenceKind::AsyncProxy,
                               .location = fill.op->location,
                               .note = "order-roles: products read what threads wrote"}));
    ops.push_back(makeArrive({.bar = {handover.full, position},
                              .by = Actor::Thread,
                              .location = fill.op->location,
                              .note = "order-roles: the thread has filled its part"}));
    return ops;
  }

  // Uses.

  void use(const Handover &handover, const HandoverSite &site) {
    waitFor(handover, site.front());
    if (guardOf(handover).empty)
      leave(handover, site);
  }

  void waitFor(const Handover &handover, const HandoverUse &use) {
    const Op *const at = beforeProducts(*use.anchor, places);
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
    if (needsFence(handover, site, at))
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
    llvm::move(ops, std::back_inserter(after[&at]));
  }

  /// Whether bulk copies follow what lanes did, and no fence of theirs stands between that and the end of the last use.
  bool needsFence(const Handover &handover, const HandoverSite &site, const Op &at) const {
    return handover.isBulk() && llvm::any_of(site, [&](const HandoverUse &use) {
             return isByLanes(use) && !use.isFenced() && use.sync().needsFence == Means::AsyncFence &&
                    !isFencedUntil(*use.anchor, at);
           });
  }
  bool isFencedUntil(const Op &use, const Op &at) const {
    const OpPlaces::Place &first = places.of(use), &last = places.of(at);
    if (first.block != last.block || last.index < first.index)
      return false;
    const auto begin = first.block->ops.begin();
    return std::any_of(begin + first.index + 1, begin + last.index + 1,
                       [](const auto &op) { return syncOf(*op).releases == Means::AsyncFence; });
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
      llvm::move(after[key], std::back_inserter(ops));
    });
    ir::insert(body.ops, body.ops.begin(), std::move(heads[&body]));
  }

  Kernel &kernel;
  std::vector<Handover> handovers;
  const OpPlaces &places;
  ThreadCopies copies;
  std::map<const Op *, Ops> before, after; ///< what is to stand there
  std::map<const Block *, Ops> heads;      ///< of roles
};

} // namespace

bool fagen::orderRoles(Kernel &kernel, PassContext &context) {
  const OpPlaces places(kernel);
  std::vector<Handover> handovers = findHandovers(kernel, places);
  if (handovers.empty())
    return false;
  ShapeCheck shape(kernel, context, "order-roles");
  if (!canOrder(kernel, handovers, places, shape))
    return false;
  RoleOrderer(kernel, std::move(handovers), places).run();
  return true;
}
