// fagen: what a role does, step by step: its body unrolled with concrete trip counts.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loops have run-time bounds, so the body is run on small concrete ones: every let that steers a loop, a position or a
// predicate takes each value from 0 to a limit, and each combination that the lets' expressions do not exclude gives
// one Timeline. That is all there is to see:
//
//   Let S be the longest ring. Slots and groups of copies repeat every S steps of a loop, and the program text between
//   two instances depends only on the step's distance from the loop's first step (what the prologue loaded) and from
//   the last (copies past the end are skipped). Two accesses more than S steps apart have between them everything that
//   stands between the same ops S steps closer together, where slots, hence bytes, are the same: if those are ordered,
//   these are. Two accesses at most S steps apart, in a run of more than 4 S steps, have S steps to spare before or
//   after them; without those steps slots, groups and predicates around the two are the same. So runs of up to
//   4 S + 2 steps show every pair of accesses that any run has, with the least that can stand between them.
//
// A loop that carries a value works on one thing a turn, and the other lets may differ from turn to turn. Positions go
// on from turn to turn, so a run of many turns is one long run with seams. A turn of more than S steps looks from both
// of its seams like one of S steps, which has less between them; accesses that are further apart than S steps meet
// within a turn, or over turns of which those in the middle are shorter than S. With m steps in the middle they lie in
// the last S - m steps before and the first S - m after. What is filled once a turn has, over longer turns, all
// between that it has over shorter ones. So are tried: single turns of up to 4 S + 2 steps, two of up to S steps, and,
// for each m below S, three of which the second has m steps and the others up to S - m. Where no let steers, all turns
// are alike, and rings go around over turns: then up to 4 S + 2 turns are tried.
//
// Lets that name `group_row` have a value for each group of four warps, so a role that uses them has a timeline for
// each group. What the lets' expressions say of their differences keeps the combinations few.
//
// An asynchronous copy is an agent of its own: it may land at any moment from its issue to the copy_wait that
// completes its group, and counts as done by the issuing thread at that wait.
#pragma once

#include "fagen/IR/IR.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"

#include <array>
#include <unordered_map>

namespace fagen {

/// Places of a role's body, numbered in program order: before each op, and the end of each block. An op is named by
/// the place before it. The numbers printed to people count ops only, from 1.
class Points {
public:
  explicit Points(const ir::Role &role);
  struct Point {
    const ir::Block *block = nullptr;
    const ir::Op *op = nullptr; ///< null at the end of the block
    unsigned loops = 0;         ///< around it
    bool conditional = false;   ///< inside an if
    unsigned number = 0;        ///< of the op, from 1
  };
  unsigned size() const { return points.size(); }
  const Point &operator[](unsigned point) const { return points[point]; }
  unsigned before(const ir::Op *op) const { return byOp.lookup(op); }
  unsigned endOf(const ir::Block *block) const { return byBlock.lookup(block); }
  /// copy_issue@5
  std::string nameOf(const ir::Op *op) const;

private:
  void add(const ir::Block &block, unsigned loops, bool conditional);

  std::vector<Point> points;
  llvm::DenseMap<const ir::Op *, unsigned> byOp;
  llvm::DenseMap<const ir::Block *, unsigned> byBlock;
  unsigned ops = 0;
};

/// An op's turn, or a block's end (no op). Every event passes its point.
struct Event {
  static constexpr unsigned kNever = ~0u;
  unsigned point = 0;
  bool active = true; ///< false: a copy whose `when` is false
  const ir::Op *op = nullptr;
  std::array<int64_t, ir::kMostPlaced> positions{}; ///< of each operand that may be a ring; 0 where there is none
  unsigned doneAt = 0;      ///< of a cp_async copy: the event whose wait completes it, or kNever
  unsigned committedAt = 0; ///< of a cp_async copy: the event that closes its group, or kNever
  unsigned group = 0;       ///< of a cp_async copy: its group; of other events: groups closed so far
  int64_t bytes = 0;        ///< that an arrive announces
  bool operator==(const Event &) const = default;
  int64_t positionOf(unsigned operand) const { return operand < positions.size() ? positions[operand] : 0; }
  /// Of the positions: for a hash.
  uint64_t mixed() const {
    uint64_t mix = 0;
    for (const int64_t position : positions)
      mix = mix * 0x9e3779b97f4a7c15 + uint64_t(position);
    return mix;
  }
};

struct Timeline {
  std::string steps;                 ///< full_tiles = 1, key_tiles = 3; of none in a pool
  std::vector<Event> events;         ///< of none in a pool
  std::vector<unsigned> numbers;     ///< in a pool: what its events are called there
  unsigned length = 0;               ///< of all events, also those that were not wanted
  unsigned role = 0;                 ///< whose warps these are, by its place among the roles that run
  unsigned firstWarp = 0, warps = 0; ///< that do this
  /// The event with which each turn of the loop that carries a value begins.
  std::vector<unsigned> turnBegins;
};

/// Why there are no timelines of a kernel that would have too many, or too long ones.
inline constexpr const char *kTooManySteps = "there are too many steps of its loops to try them all";

/// Calls `visit` with every timeline of the role. A copy_wait with pending = -1 completes nothing yet. Gives false,
/// with the reason in `problem`, when a loop's bound or a position is none that lets, loop variables and constants
/// determine.
bool forEachTimeline(const ir::Kernel &kernel, const ir::Role &role, const Points &points, std::string &problem,
                     llvm::function_ref<void(const Timeline &)> visit);

/// Timelines, each once. They have most of their events in common, so these stand here once, too, and timelines are
/// lists of their numbers.
class TimelinePool {
public:
  /// The number of an event of the role.
  unsigned numberOf(unsigned role, const Event &event);
  const Event &operator[](unsigned number) const { return events[number]; }
  /// One of the role with the same events, whichever of its warps: a copy, or an older one.
  const Timeline *keep(const Timeline &timeline);
  /// What is kept, of these warps: the one that there is of them.
  const Timeline *of(const Timeline &warps, const Timeline &kept);

private:
  std::vector<Event> events;
  std::vector<unsigned> roles; ///< by event
  std::unordered_map<size_t, llvm::SmallVector<unsigned, 1>> eventsByHash;
  std::unordered_map<size_t, llvm::SmallVector<std::unique_ptr<const Timeline>, 1>> byHash;
  llvm::DenseMap<std::pair<const Timeline *, unsigned>, std::unique_ptr<Timeline>> twins; ///< by their first warp
};

/// Roles that run side by side with the same values of the lets: one timeline a role, or one for each group of its
/// warps.
struct Run {
  llvm::ArrayRef<const Timeline *> timelines; ///< of a pool
  llvm::function_ref<std::string()> steps;    ///< full_tiles = 1, key_tiles = 3
};

/// Some of the places that warps of a role come to, in order, whoever else runs. Each is followed by the positions of
/// the op's fragments that have slots.
struct Course {
  unsigned role = 0; ///< by its place among the roles that run
  std::vector<int64_t> places;
  std::string steps; ///< of the first run with it
};

/// What an analysis asks of runs.
struct RunVisitor {
  /// Whether there are events at the place, or it is of the courses.
  llvm::function_ref<bool(unsigned role, unsigned point)> hasEvents, isOfCourses;
  /// Whether an event there makes the next one needless where `isNeedless`.
  llvm::function_ref<bool(unsigned role, unsigned point)> suffices, isNeedless;
  llvm::function_ref<void(Course)> course; ///< called once with each
  llvm::function_ref<void(const Run &)> run;
};

/// Visits every run of the roles, each with its points. Of copies there are events where they happen; where an event
/// would name one that there is not, it names the next one.
bool forEachRun(const ir::Kernel &kernel, llvm::ArrayRef<const ir::Role *> roles, llvm::ArrayRef<const Points *> points,
                TimelinePool &pool, std::string &problem, const RunVisitor &visitor);

class ExprValues;

/// How far runs are tried.
enum class Extent : uint8_t {
  Whole, ///< see above
  /// One turn of a loop that carries a value, and up to a step more than the longest ring has slots, S: what is copied
  /// before a loop is used up then, and a copy in it is used. No op of a longer run is further than S steps from the
  /// one that filled what it reads, so there is one as far from it in a short one. Of groups of warps that differ in
  /// their lets the first one stands for all.
  Short
};

/// What an analysis does with runs of which all events are kept.
struct FullRunVisitor {
  llvm::function_ref<void(ExprValues &)> prepare;              ///< called once, before values change
  llvm::function_ref<void(unsigned role, const Event &)> come; ///< with each op; the values are those there
  llvm::function_ref<void(const Run &)> run;                   ///< after the ops of all its timelines, in their order
};

/// Visits every run of the roles, op by op.
bool forEachFullRun(const ir::Kernel &kernel, llvm::ArrayRef<const ir::Role *> roles,
                    llvm::ArrayRef<const Points *> points, Extent extent, std::string &problem,
                    const FullRunVisitor &visitor);

/// Gives each copy_wait whose count is still open (pending = -1) the largest one that leaves no reader before its
/// data: the newest groups that may be outstanding in every timeline. False when some copy has no wait before its
/// reader, or a timeline cannot be built; verify-barriers says which.
bool resolveWaits(ir::Kernel &kernel);

} // namespace fagen
