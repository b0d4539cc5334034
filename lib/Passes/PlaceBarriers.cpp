// fagen: pass place-barriers: orders what copies, waits and ownership leave open.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Needs final layouts and offsets: a hazard is two accesses to the same bytes. Ensures that every hazard is covered,
// that no place marker is left, and that each barrier and wait has a site and a line in the ledger. It stands after
// allocate-shared because buffers may share bytes; nothing may move an access after it.
//
//   legacy   a CTA barrier at every place: after_load, after_scores, after_max, after_exp, after_pv, after_tile
//   light    at after_load, after_scores, after_exp, after_tile
//   at(...)  at these places, and nowhere else: refused when a hazard stays open
//   minimal  none at the places; an irredundant cover of the hazards (Analysis/Cover.h): a warp barrier where the
//            threads of a warp meet, a named one where groups of warps do, else a CTA barrier
//
// Kernels of several roles, or with ops that run alongside threads (Analysis/Order.h), get none: they must be ordered.
//
// legacy and light get what they lack from the same cover, each addition a remark.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "OrderProofs.h"
#include "Reports/HazardReport.h"
#include "Reports/OrderReport.h"
#include "fagen/Analysis/Cover.h"
#include "fagen/Spec/Spec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

#include <map>

using namespace fagen;
using namespace fagen::ir;

namespace {

/// Named barriers that no op of the kernel uses. Those of a grouping are taken once: the same warps meet there again.
class FreeBarriers {
public:
  explicit FreeBarriers(const Kernel &kernel) : first(firstFreeBarrier(kernel)) {}
  unsigned count() const { return kNamedBarriers - first; }
  unsigned take(const Grouping &grouping) {
    auto [it, isNew] = taken.try_emplace(grouping, first);
    if (isNew)
      first += grouping.count;
    return it->second;
  }

private:
  static constexpr unsigned kNamedBarriers = 16;
  unsigned first;
  std::map<Grouping, unsigned> taken;
};

class BarrierPlacer {
public:
  BarrierPlacer(Kernel &kernel, Role &role, PassContext &context)
      : kernel(kernel), role(role), diags(context.diags), ids(kernel),
        policy(valueOr(kernel.options.barriers, BarrierPolicy::Minimal)),
        schedule(context.variant ? &context.variant->schedule : nullptr) {
    for (const std::string &place : placesOf(policy, context))
      places.insert(place);
    takesEveryPlace = policy == BarrierPolicy::At && !context.variant;
  }

  bool run() {
    convertPlaces(role.body);
    if (policy == BarrierPolicy::At) {
      const HazardInfo info(kernel, role);
      return canBeMended(info) && checkPlaces(info);
    }
    OrderProof &proof = proofOf(proofKey(kernel));
    const std::lock_guard lock(proof.mutex);
    if (!proof.missing) {
      const HazardInfo info(kernel, role);
      if (!canBeMended(info))
        return false;
      proof.missing = coverHazards(info, ids.count(), [](const Hazard &) { return true; });
    }
    insertAll(Points(role), *proof.missing);
    return true;
  }

private:
  static std::vector<std::string> placesOf(BarrierPolicy policy, const PassContext &context) {
    switch (policy) {
    case BarrierPolicy::Legacy:
      return {"after_load", "after_scores", "after_max", "after_exp", "after_pv", "after_tile"};
    case BarrierPolicy::Light:
      return {"after_load", "after_scores", "after_exp", "after_tile"};
    case BarrierPolicy::Minimal:
      return {};
    case BarrierPolicy::At:
      return context.variant ? context.variant->schedule.barrierPlaces : std::vector<std::string>();
    }
    return {};
  }

  bool canBeMended(const HazardInfo &info) const {
    return HazardReport(info, diags, schedule ? "place-barriers" : "").reportUnmendable(kernel);
  }

  bool hasBarrierAt(llvm::StringRef place) const { return takesEveryPlace || places.contains(place); }

  std::unique_ptr<Op> barrierFor(const Reach &reach, const Location &location) {
    if (reach.scope == Scope::Group)
      return makeBarrier({.scope = BarrierScope::Named,
                          .id = ids.take(reach.grouping),
                          .firstWarp = role.firstWarp,
                          .warps = role.warps,
                          .groups = reach.grouping.count,
                          .interleaved = reach.grouping.isInterleaved,
                          .location = location});
    const bool isOfWarp = reach.scope == Scope::Warp;
    return makeBarrier({.scope = isOfWarp ? BarrierScope::Warp : BarrierScope::Cta, .location = location});
  }

  /// Markers of chosen places become CTA barriers, the others go.
  void convertPlaces(Block &block) {
    rewrite(block, [this](std::unique_ptr<Op> op, Ops &ops) {
      const auto place = dynCast<PlaceOp>(*op);
      if (!place)
        ops.push_back(std::move(op));
      else if (hasBarrierAt(toString(place->name())))
        ops.push_back(makeBarrier({.scope = BarrierScope::Cta, .place = place->name(), .location = op->location}));
    });
  }

  bool checkPlaces(const HazardInfo &info) {
    const HazardReport report(info, diags);
    std::vector<const Hazard *> open;
    for (const Hazard &hazard : info.hazards())
      if (!info.isCovered(hazard))
        open.push_back(&hazard);
    if (!open.empty() && schedule)
      report.reportPlaces(open, schedule->locationOf("barriers"));
    else
      for (const Hazard *hazard : open)
        report.reportOpen(*hazard);
    if (open.empty())
      warnOfSuperfluous(info);
    return open.empty();
  }

  /// Where the spec asks for the places; of textual IR at the first barrier of each.
  void warnOfSuperfluous(const HazardInfo &info) const {
    llvm::StringSet<> asked;
    for (const BarrierPoint &barrier : info.barriers()) {
      const llvm::StringRef place = placeOf(*barrier.op);
      if (!place.empty() && asked.insert(place).second && isSuperfluous(info, place))
        diags.warning(schedule ? schedule->locationOf("barriers") : barrier.op->location,
                      "place " + place + " covers no hazard that the others leave open in " + kernel.symbol);
    }
  }

  static llvm::StringRef placeOf(const Op &barrier) {
    const std::optional<PlaceName> place = BarrierOp(barrier).place();
    return place ? toString(*place) : "";
  }

  /// Whether all barriers of a place can go together.
  static bool isSuperfluous(const HazardInfo &info, llvm::StringRef place) {
    auto isElsewhere = [&](const Op *barrier) { return placeOf(*barrier) != place; };
    return llvm::all_of(info.hazards(), [&](const Hazard &hazard) {
      return hazard.conflict.scope == Scope::Thread || llvm::all_of(hazard.paths, [&](const Path &path) {
               return llvm::any_of(info.covering(hazard, path), isElsewhere);
             });
    });
  }

  void insertAll(const Points &points, const std::vector<Placement> &placements) {
    for (const Placement &placement : placements) {
      const Points::Point &point = points[placement.point];
      const Location location = point.op ? point.op->location : lastLocation(*point.block);
      if (policy != BarrierPolicy::Minimal)
        diags.remark(location, "barriers = " + toString(policy) + " leaves a hazard open; " +
                                   toString(placement.reach.scope) + " barrier added " + whereIs(points, point));
      insert(*findBlock(role.body, point.block), point.op, barrierFor(placement.reach, location));
    }
  }

  static std::string whereIs(const Points &points, const Points::Point &point) {
    return point.op ? "before " + points.nameOf(point.op) : "at the end of the block";
  }

  static Location lastLocation(const Block &block) {
    return block.ops.empty() ? Location() : block.ops.back()->location;
  }

  static void insert(Block &block, const Op *before, std::unique_ptr<Op> barrier) {
    auto at = llvm::find_if(block.ops, [&](const std::unique_ptr<Op> &op) { return op.get() == before; });
    block.ops.insert(at, std::move(barrier));
  }

  static Block *findBlock(Block &block, const Block *wanted) {
    if (&block == wanted)
      return &block;
    for (std::unique_ptr<Op> &op : block.ops)
      if (Block *found = findBlock(op->body, wanted))
        return found;
    return nullptr;
  }

  Kernel &kernel;
  Role &role;
  Diagnostics &diags;
  FreeBarriers ids;
  const BarrierPolicy policy;
  const Schedule *const schedule; ///< null in textual IR; otherwise a missing wait is a mistake of the passes before
  bool takesEveryPlace = false;   ///< textual IR: the markers are the places
  llvm::StringSet<> places;
};

} // namespace

static void removePlaces(Block &block) {
  llvm::erase_if(block.ops, [](const std::unique_ptr<Op> &op) { return op->kind == OpKind::Place; });
  for (std::unique_ptr<Op> &op : block.ops)
    removePlaces(op->body);
}

/// Between roles nothing is placed: who made them ordered them, and if not, says where.
static bool checkOrder(Kernel &kernel, PassContext &context) {
  for (Role &role : kernel.roles)
    removePlaces(role.body);
  OrderProof &proof = proofOfRoles(kernel);
  const std::lock_guard lock(proof.mutex);
  if (!proof.covers) {
    const OrderInfo info(kernel);
    if (!reportOrder(kernel, info, context.diags, context.variant ? "place-barriers" : ""))
      return false;
    proof.covers = coversOf(kernel, info);
  }
  fillLedger(kernel, *proof.covers);
  return true;
}

bool fagen::placeBarriers(Kernel &kernel, PassContext &context) {
  if (needsOrder(kernel)) {
    if (checkOrder(kernel, context))
      kernel.phase = Phase::Placed;
    return true;
  }
  if (!BarrierPlacer(kernel, kernel.roles.front(), context).run())
    return true;
  OrderProof &proof = proofOf(proofKey(kernel)); // with its barriers
  const std::lock_guard lock(proof.mutex);
  if (!proof.ledger) {
    const HazardInfo info(kernel, kernel.roles.front());
    proof.ledger = coversOfRole(kernel.roles.front(), info);
    proof.isCovered = areCovered(info);
  }
  fillLedgerOfRole(kernel, *proof.ledger);
  kernel.phase = Phase::Placed;
  return true;
}
