// fagen: which accesses of different threads meet on the same bytes, and what could order them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For every timeline (Timeline.h) and every two instances of ops in it that touch a common byte of shared memory
// (Access.h), at least one writing: a hazard, unless the same thread does both in program order. What orders it is a
// barrier that reaches as far as the threads are apart and stands between the two; where the first is an asynchronous
// copy, between the copy_wait that completes it and the second. Hazards are kept by static ops, with the sets of
// points that the path between the two passes; a set that contains another says nothing new and is dropped.
#pragma once

#include "fagen/Analysis/Access.h"
#include "fagen/Analysis/Timeline.h"

#include "llvm/ADT/BitVector.h"

namespace fagen {

/// One use of a shared buffer by an op.
struct Access {
  const ir::Op *op = nullptr;
  unsigned operand = 0;
  const ir::Buffer *buffer = nullptr;
  bool reads = false, writes = false;
  bool isAsync = false;
  unsigned index = 0;
};

/// The accesses of a role, and who meets in any two of them.
class AccessTable {
public:
  AccessTable(const ir::Kernel &kernel, const ir::Role &role);
  llvm::ArrayRef<Access> accesses() const { return all; }
  llvm::ArrayRef<Access> of(const ir::Op *op) const;
  /// The access at this position of its buffer (0 for a buffer that is no ring), as conflict() takes it.
  unsigned cellOf(const Access &access, int64_t position) const;
  /// Who meets on these two cells.
  const Conflict &conflict(unsigned a, unsigned b);
  /// Whether threads of the access's op meet on a byte in one run of the op.
  bool meetsItself(const Access &access) const { return footprints[footprintOf[access.index]].meetsItself(); }
  /// Whether it touches bytes that its buffer has not.
  bool leavesBuffer(const Access &access) const { return footprints[footprintOf[access.index]].leavesBuffer(); }

private:
  /// A footprint in a slot of its buffer.
  struct Cell {
    unsigned footprint;
    uint64_t base; ///< first byte of the slot
  };

  std::vector<Access> all;
  llvm::DenseMap<const ir::Op *, std::pair<unsigned, unsigned>> ranges;
  std::vector<unsigned> footprintOf; ///< by access; equal accesses share one
  std::vector<Footprint> footprints;
  std::vector<unsigned> firstCell; ///< by footprint: that of slot 0
  std::vector<Cell> cells;
  std::vector<Conflict> known; ///< by two cells
  std::vector<bool> isKnown;
};

/// Two instances in a timeline that meet, the first one earlier.
struct Meeting {
  const Access &first, &second;
  unsigned firstEvent, secondEvent;
  int64_t firstPosition, secondPosition;
  const Conflict &conflict;
};

/// Which instances are asked for as the first of a meeting.
enum class Sources : uint8_t { All, AsyncCopies };

/// Calls `visit` for meetings of which at least one writes and which program order alone does not settle. For each
/// instance only the next one of each op and scope is visited: later ones have all of that path in theirs.
void forEachMeeting(const Timeline &timeline, AccessTable &table, Sources sources,
                    llvm::function_ref<void(const Meeting &)> visit);

enum class HazardKind : uint8_t { Raw, War, Waw };
llvm::StringRef toString(HazardKind kind); ///< RAW, WAR, WAW

/// What lies between the two accesses of a hazard.
struct Path {
  llvm::BitVector points; ///< passed from the source (or the wait that completes it) to the sink
  std::string steps;      ///< a timeline that goes this way
};

struct Hazard {
  HazardKind kind = HazardKind::Raw;
  Access source, sink;
  std::optional<int64_t> distance; ///< positions, when both are on one ring; the smallest
  Conflict conflict;
  bool isUnfinished = false;                  ///< the source is a copy that no wait completes before the sink
  std::vector<Path> paths;                    ///< none contains another; when unfinished one, without points
  llvm::SmallVector<const ir::Op *, 2> waits; ///< that complete the source
  /// "RAW k: copy_issue -> mma s"
  std::string title() const;
};

/// A barrier op of the body and how far it orders.
struct BarrierOp {
  const ir::Op *op = nullptr;
  unsigned point = 0;
  Scope scope = Scope::Cta;
  uint32_t warps = ~0u;
  bool orders(const Conflict &conflict) const {
    return scope == Scope::Warp ? conflict.scope <= Scope::Warp : (conflict.warps & ~warps) == 0;
  }
};

/// All hazards of one role, in the order of (source, sink).
class HazardInfo {
public:
  HazardInfo(const ir::Kernel &kernel, const ir::Role &role);

  const std::string &problem() const { return why; } ///< not empty: the role cannot be analysed
  const Points &points() const { return numbering; }
  llvm::ArrayRef<Hazard> hazards() const { return found; }
  llvm::ArrayRef<BarrierOp> barriers() const { return placed; }
  /// Writes of ops whose own threads meet on a byte; no barrier can order them.
  llvm::ArrayRef<Access> selfConflicts() const { return racing; }

  /// Same thread: waits do. Else every path has a barrier that orders it, `without` not counted.
  bool isCovered(const Hazard &hazard, const ir::Op *without = nullptr) const;
  /// The barriers on the path that order the conflict, in program order.
  llvm::SmallVector<const ir::Op *, 2> covering(const Hazard &hazard, const Path &path) const;
  /// A timeline where the hazard is open.
  const std::string &openSteps(const Hazard &hazard) const;
  /// One line: "RAW k: copy_issue@5 -> mma@12 distance 0, cta, covered by copy_wait@9 barrier@11".
  std::string describe(const Hazard &hazard) const;

private:
  void addSelfConflicts(AccessTable &table);

  Points numbering;
  std::string why;
  std::vector<Hazard> found;
  std::vector<BarrierOp> placed;
  std::vector<Access> racing;
};

} // namespace fagen
