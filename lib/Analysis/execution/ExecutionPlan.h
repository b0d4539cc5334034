// fagen: what all executions of a kernel's roles have in common.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Clocks.h"
#include "fagen/Analysis/AccessTable.h"
#include "fagen/Analysis/Timeline.h"
#include "fagen/IR/OpClasses.h"
#include "fagen/IR/Sync.h"

#include <array>
#include <map>

namespace fagen {

/// The lanes of a warp that do something: bit 0 the first, bit 1 the others.
using Lanes = unsigned;
inline constexpr Lanes kFirstLane = 1, kAllLanes = 3;

/// An op as executions need it: its attributes looked up once.
struct PlannedOp {
  const ir::Op *op = nullptr;
  uint16_t number = 0; ///< in clocks
  bool isIdle = true;  ///< neither orders nor accesses anything but fragments
  /// The lanes of a warp come together there; and that is all. Then they know nothing new after an op that meets them,
  /// too, and that they are past it is nothing that somebody asks for.
  bool meetsLanes = false, onlyMeetsLanes = false;
  ir::SyncInfo sync;
  bool isShared = false;      ///< done in all CTAs of the cluster
  bool isInterleaved = false; ///< of a barrier's groups
  int64_t pending = 0;
  unsigned id = 0, groups = 1, firstWarp = 0, warps = 0; ///< of a barrier or turn
  const ir::Buffer *bar = nullptr;                       ///< the mbarrier, which slots begin with firstSlot
  unsigned barOperand = 0, firstSlot = 0;
  int64_t bytes = 0;                      ///< of a bulk copy, in a cluster of the CTA's share
  std::array<uint8_t, kMaxWarps> lanes{}; ///< who does it, by warp of the role
  llvm::SmallVector<const Access *, 3> accesses;
  llvm::SmallVector<const Access *, 3> fragments; ///< accesses too, of each warp's own: FragmentOrder.h
  bool isOfFragments = false; ///< it has such, or says when products may have some, or have left them
  /// The same for ops that do the same to an execution, if they lie in one role: of two loops that a mask tells apart,
  /// or of a copy ahead of its loop.
  unsigned doing = 0;
};

/// An access in a slot, by a warp of each CTA, that a warp's access meets.
struct Rival {
  /// What the later one needs in addition to knowing that it is done: a fence where it is by the async proxy, and the
  /// earlier one is not.
  enum class Ask : uint8_t { Order, InitFence, ProxyFence };
  unsigned access = 0, instance = 0; ///< `instance`: in the first CTA
  unsigned number = 0;               ///< of access and slot among all that were found, for all warps of both accesses
  uint8_t warp = 0, ctaStep = 0;     ///< `ctaStep`: from its instance to the one in the next CTA
  Ask ask = Ask::Order;
  bool isSameThread = false; ///< in the CTA of the later access: each of the threads meets itself only
};

class ExecutionPlan {
public:
  ExecutionPlan(const ir::Kernel &kernel, llvm::ArrayRef<const ir::Role *> roles, llvm::ArrayRef<Points> points,
                AccessTable &table);

  llvm::ArrayRef<const ir::Role *> roles() const { return all; }
  const PlannedOp &op(unsigned role, unsigned point) const { return ops[role][point]; }
  /// Null for 0.
  const ir::Op *named(unsigned number) const { return number == 0 ? nullptr : names[number - 1]; }
  llvm::ArrayRef<Access> accesses() const { return table.accesses(); }
  /// The place of an access of memory among its op's.
  uint8_t placeOf(unsigned access) const { return places[access]; }
  /// Which a warp's access meets at this position, in the order of accesses and slots.
  llvm::ArrayRef<Rival> rivalsOf(const Access &access, int64_t position, unsigned warp) {
    RivalsByWarp &known = rivals[access.index][slotAt(*access.buffer, position)];
    if (known.empty())
      known = findRivals(access, position);
    return known[warp];
  }
  /// Of all rivals that were asked for so far.
  unsigned rivalNumbers() const { return rivalCount; }
  /// Of its role's first warp in the first CTA; those of the role's other warps follow, then those in other CTAs.
  unsigned instanceOf(const Access &access, int64_t position) const {
    return firstInstance[access.index] + slotAt(*access.buffer, position) * ctas * all[access.role]->warps;
  }
  unsigned instances() const { return instanceCount; }
  /// The slot that the access touches at this position, among those of all rings in shared memory but mbarriers;
  /// kNoTile for others.
  static constexpr unsigned kNoTile = ~0u;
  unsigned tileSlotOf(const Access &access, int64_t position) const {
    const unsigned first = firstTile[access.index];
    return first == kNoTile ? kNoTile : first + slotAt(*access.buffer, position);
  }
  unsigned tileSlots() const { return tileCount; }

  const ir::Kernel &kernel;
  const unsigned ctas, ctaWarps; ///< of a cluster, of each of its CTAs
  /// Those of each CTA, and the cluster's last.
  unsigned barriers() const { return ctas * ClockShape::kBarriers + (ctas > 1); }
  ClockShape shape;
  /// Of mbarriers of a CTA: whose, which, and whether copies' bytes are counted there.
  struct MbarrierSlot {
    const ir::Buffer *buffer;
    unsigned number;
    bool countsBytes;
  };
  std::vector<MbarrierSlot> slots;

private:
  PlannedOp plan(unsigned role, const ir::Op &op);
  void planBarrier(PlannedOp &planned) const;
  std::vector<int64_t> doingOf(const PlannedOp &planned) const;
  void findEntries();
  /// Who does what.
  void forEachLane(llvm::function_ref<void(const PlannedOp &, unsigned agent)> visit) const;
  Lanes lanesOf(const ir::Role &role, unsigned warp, const PlannedOp &op) const;
  using RivalsByWarp = std::vector<std::vector<Rival>>;
  RivalsByWarp findRivals(const Access &access, int64_t position);

  const llvm::ArrayRef<const ir::Role *> all;
  AccessTable &table;
  std::vector<std::vector<PlannedOp>> ops; ///< by role and point
  std::vector<const ir::Op *> names;
  std::map<std::vector<int64_t>, unsigned> doings; ///< by all that tells them apart
  llvm::DenseMap<const ir::Buffer *, unsigned> firstSlot;
  std::vector<unsigned> firstInstance; ///< by access
  std::vector<unsigned> firstTile;     ///< by access: of slot 0
  std::vector<uint8_t> places;         ///< by access
  unsigned instanceCount = 0, rivalCount = 0, tileCount = 0;
  std::vector<std::vector<RivalsByWarp>> rivals; ///< by access and slot; empty: not found yet
};

} // namespace fagen
