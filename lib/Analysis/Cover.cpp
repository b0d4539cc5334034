// fagen: covers hazards with barriers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every path of an open hazard demands a barrier at one of its points; a candidate is a point with a reach, and meets
// the demands that contain the point and need no more. This is weighted set cover, on nearly ordered intervals:
//
//   1. a demand whose candidates include all of another demand's is met with that one: dropped
//   2. a candidate that meets no more than a cheaper one, or a later one of the same price, is dropped
//   3. the only candidate of a demand is taken
//   4. when 1 to 3 find nothing more, the candidate that meets most for its price is taken
//   5. at last, dearest first, what the others make superfluous is given back, and barriers are weakened
//
// In a loop a barrier costs as much as many outside it; a CTA barrier as much as many warp barriers, and as two that
// only groups of warps share. Just before the
// op that waits is as good as anywhere else and leaves the warps the most freedom, so later points win ties; the end
// of a block is the last choice.

#include "fagen/Analysis/Cover.h"

#include "llvm/ADT/STLExtras.h"

#include <set>

using namespace fagen;

namespace {

struct Demand {
  llvm::BitVector points;
  Reach reach;
};

struct Candidate {
  Placement placement;
  uint64_t cost;
  llvm::BitVector meets; ///< demands
};

bool isSubset(const llvm::BitVector &a, const llvm::BitVector &b) { return !a.test(b); }

class CoverSolver {
public:
  CoverSolver(const HazardInfo &info, unsigned freeIds, llvm::function_ref<bool(const Hazard &)> isWanted)
      : points(info.points()) {
    addDemands(info, isWanted);
    findReaches(freeIds);
    addCandidates();
    open.resize(demands.size(), true);
  }

  std::vector<Placement> run() {
    while (open.any()) {
      dropDominated();
      if (!takeForced())
        takeBest();
    }
    dropSuperfluous();
    llvm::sort(taken, [](const Candidate &a, const Candidate &b) { return a.placement.point < b.placement.point; });
    std::vector<Placement> result;
    for (const Candidate &candidate : taken)
      result.push_back(candidate.placement);
    return result;
  }

private:
  void addDemands(const HazardInfo &info, llvm::function_ref<bool(const Hazard &)> isWanted) {
    llvm::BitVector usable(points.size());
    for (unsigned p = 0; p < points.size(); ++p)
      usable[p] = !points[p].conditional;
    for (const Hazard &hazard : info.hazards()) {
      if (hazard.isUnfinished || hazard.conflict.scope == Scope::Thread || !isWanted(hazard))
        continue;
      for (const Path &path : hazard.paths)
        if (info.covering(hazard, path).empty())
          addDemand({path.points, {hazard.conflict.scope, hazard.conflict.grouping}}, usable);
    }
  }

  void addDemand(Demand demand, const llvm::BitVector &usable) {
    demand.points &= usable;
    if (demand.points.none()) // inside an if, where no barrier may stand; the caller finds it still open
      return;
    auto implies = [](const Demand &a, const Demand &b) {
      return a.reach.covers(b.reach) && isSubset(a.points, b.points);
    };
    if (llvm::any_of(demands, [&](const Demand &other) { return implies(other, demand); }))
      return;
    llvm::erase_if(demands, [&](const Demand &other) { return implies(demand, other); });
    demands.push_back(std::move(demand));
  }

  /// Those to choose from, cheapest first: of groups only what demands ask for, as far as there are barriers.
  void findReaches(unsigned freeIds) {
    std::set<Reach> asked;
    for (const Demand &demand : demands)
      if (demand.reach.scope == Scope::Group)
        asked.insert(demand.reach);
    reaches.push_back({Scope::Warp, {}});
    for (const Reach &reach : llvm::reverse(asked)) // smallest groups first
      if (reach.grouping.count <= freeIds) {
        freeIds -= reach.grouping.count;
        reaches.push_back(reach);
      }
    reaches.push_back({Scope::Cta, {}});
  }

  llvm::BitVector metBy(const Placement &placement) const {
    llvm::BitVector met(demands.size());
    for (unsigned d = 0; d < demands.size(); ++d)
      met[d] = demands[d].points.test(placement.point) && placement.reach.covers(demands[d].reach);
    return met;
  }

  void addCandidates() {
    for (unsigned p = 0; p < points.size(); ++p)
      for (const Reach &reach : reaches) {
        Candidate candidate{{p, reach}, costOf(p, reach), metBy({p, reach})};
        if (candidate.meets.any())
          candidates.push_back(std::move(candidate));
      }
  }

  uint64_t costOf(unsigned point, const Reach &reach) const {
    constexpr uint64_t kWarpCost = 2, kGroupCost = 16, kCtaCost = 32, kLoopFactor = 64;
    uint64_t cost = reach.scope == Scope::Cta ? kCtaCost : reach.scope == Scope::Group ? kGroupCost : kWarpCost;
    cost += points[point].op == nullptr;
    for (unsigned i = 0; i < points[point].loops; ++i)
      cost *= kLoopFactor;
    return cost;
  }

  /// Whether b makes a superfluous, looking at open demands only.
  bool dominates(const Candidate &b, const Candidate &a) const {
    llvm::BitVector mine = a.meets, its = b.meets;
    mine &= open;
    its &= open;
    if (!isSubset(mine, its) || b.cost > a.cost)
      return false;
    return b.cost < a.cost || mine != its || b.placement.point > a.placement.point;
  }

  void dropDominated() {
    std::vector<Candidate> kept;
    for (const Candidate &a : candidates)
      if (a.meets.anyCommon(open) &&
          llvm::none_of(candidates, [&](const Candidate &b) { return &a != &b && dominates(b, a); }))
        kept.push_back(a);
    candidates = std::move(kept);
  }

  bool takeForced() {
    for (unsigned d : open.set_bits()) {
      const Candidate *only = nullptr;
      unsigned count = 0;
      for (const Candidate &candidate : candidates)
        if (candidate.meets.test(d)) {
          only = &candidate;
          ++count;
        }
      if (count == 1) {
        take(*only);
        return true;
      }
    }
    return false;
  }

  void takeBest() {
    auto isBetter = [this](const Candidate &a, const Candidate &b) {
      const uint64_t left = openOf(a) * b.cost, right = openOf(b) * a.cost;
      return left != right ? left > right : a.placement.point > b.placement.point;
    };
    const Candidate *best = &candidates.front();
    for (const Candidate &candidate : candidates)
      if (isBetter(candidate, *best))
        best = &candidate;
    take(*best);
  }

  uint64_t openOf(const Candidate &candidate) const {
    llvm::BitVector met = candidate.meets;
    met &= open;
    return met.count();
  }

  void take(const Candidate &candidate) {
    open.reset(candidate.meets);
    taken.push_back(candidate);
  }

  void dropSuperfluous() {
    llvm::stable_sort(taken, [](const Candidate &a, const Candidate &b) { return a.cost > b.cost; });
    for (size_t i = 0; i < taken.size();) {
      if (areMetBy(taken, i)) {
        taken.erase(taken.begin() + i);
        continue;
      }
      weaken(taken[i++]);
    }
  }

  void weaken(Candidate &candidate) {
    const Candidate before = candidate;
    for (const Reach &reach : reaches) {
      candidate.placement.reach = reach;
      candidate.meets = metBy(candidate.placement);
      if (reach == before.placement.reach || areMetBy(taken, taken.size()))
        return;
    }
  }

  /// Whether `set` without its element `skip` meets every demand.
  bool areMetBy(llvm::ArrayRef<Candidate> set, size_t skip) const {
    llvm::BitVector met(demands.size());
    for (size_t i = 0; i < set.size(); ++i)
      if (i != skip)
        met |= set[i].meets;
    return met.all();
  }

  const Points &points;
  std::vector<Demand> demands;
  std::vector<Reach> reaches;
  std::vector<Candidate> candidates, taken;
  llvm::BitVector open;
};

} // namespace

std::vector<Placement> fagen::coverHazards(const HazardInfo &info, unsigned freeIds,
                                           llvm::function_ref<bool(const Hazard &)> isWanted) {
  return CoverSolver(info, freeIds, isWanted).run();
}
