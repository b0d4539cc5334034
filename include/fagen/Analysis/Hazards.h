// fagen: which accesses of different threads meet on the same bytes, and what could order them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For every timeline (Timeline.h) and every two instances of ops in it that touch a common byte of shared memory
// (Access.h), at least one writing: a hazard, unless the same thread does both in program order. What orders it is a
// barrier that reaches as far as the threads are apart and stands between the two; where the first is an asynchronous
// copy, between the copy_wait that completes it and the second. Hazards are kept by static ops, with the sets of
// points that the path between the two passes; a set that contains another says nothing new and is dropped.
#pragma once

#include "fagen/Analysis/AccessTable.h"
#include "fagen/Analysis/Timeline.h"

#include "llvm/ADT/BitVector.h"

namespace fagen {

/// Two instances in a timeline that meet, the first one earlier.
struct Meeting {
  const Access &first, &second;
  unsigned firstEvent, secondEvent;
  int64_t firstPosition, secondPosition;
  const Conflict &conflict;
};

/// Which instances are asked for as the first of a meeting.
enum class Sources : uint8_t { All, AsyncCopies };

/// Calls `visit` for meetings of which at least one writes and which neither program order nor a warp barrier of the
/// second op settles. For each instance only the next one of each access and scope is visited: later ones have all of
/// that path in theirs.
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
struct BarrierPoint {
  const ir::Op *op = nullptr;
  unsigned point = 0;
  Scope scope = Scope::Cta;
  uint32_t warps = ~0u;
  Grouping grouping; ///< where the scope is Group
  bool orders(const Conflict &conflict) const;
};

/// All hazards of one role, in the order of (source, sink).
class HazardInfo {
public:
  HazardInfo(const ir::Kernel &kernel, const ir::Role &role);
  /// With a table of the role's accesses: barriers and waits do not change it.
  HazardInfo(const ir::Kernel &kernel, const ir::Role &role, AccessTable &table);

  const std::string &problem() const { return why; } ///< not empty: the role cannot be analysed
  const Points &points() const { return numbering; }
  llvm::ArrayRef<Hazard> hazards() const { return found; }
  llvm::ArrayRef<BarrierPoint> barriers() const { return placed; }
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
  void collect(const ir::Kernel &kernel, const ir::Role &role, AccessTable &table);
  void addSelfConflicts(AccessTable &table);

  Points numbering;
  std::string why;
  std::vector<Hazard> found;
  std::vector<BarrierPoint> placed;
  std::vector<Access> racing;
};

} // namespace fagen
