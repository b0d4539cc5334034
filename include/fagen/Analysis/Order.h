// fagen: what orders the roles of a kernel: mbarriers, named barriers, fences, asynchronous products and bulk copies.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each run of the roles (forEachRun) is executed on paper. Who may go on depends on counts only, never on who is
// faster, so one order of execution stands for all of them: if it ends, every one does. Vector clocks
// (lib/Analysis/execution/Clocks.h) say what every thread knows; two accesses that meet are ordered if the threads of
// the second know of the first.
#pragma once

#include "fagen/Analysis/Hazards.h"

namespace fagen {

/// Whether only this analysis can say what orders the kernel's ops: it has several roles, or synchronises with more
/// than barriers, copy_wait and one role.
bool needsOrder(const ir::Kernel &kernel);

/// That a phase can count.
inline constexpr int64_t kMostBytesOfPhase = (int64_t(1) << 20) - 1;

/// What OrderInfo sees of how large tiles are and where they lie: who meets on which bytes, and of the bytes that
/// copies bring and arrivals announce their proportions. The rest it sees of ops, positions and values that steer them.
std::string sizesSeenBetweenRoles(const ir::Kernel &kernel);

/// The bytes of a bulk copy that a CTA issues.
int64_t bytesOfCopy(const ir::Kernel &kernel, const ir::Op &op);

/// Two accesses that meet.
struct OrderedPair {
  HazardKind kind = HazardKind::Raw;
  Access source, sink;
  std::optional<int64_t> distance; ///< positions, when both are on one ring; the smallest
  std::string open;                ///< what is missing; empty when the two are ordered
  std::string steps;               ///< a run where they meet; where they are open, one where that is so
  const ir::Op *release = nullptr, *acquire = nullptr; ///< the first and the last op that order them, where some do
};

/// What is wrong with how the roles synchronise, whatever they access; or, where accesses are in order, a read of
/// another position than the slot holds.
struct OrderDefect {
  const ir::Op *op = nullptr;
  std::string message;
  std::string steps;
};

class OrderInfo {
public:
  explicit OrderInfo(const ir::Kernel &kernel);

  const std::string &problem() const { return why; }      ///< not empty: the kernel cannot be analysed
  bool isTooLong() const { return why == kTooManySteps; } ///< for no other reason than its size
  llvm::ArrayRef<OrderedPair> pairs() const { return found; }
  llvm::ArrayRef<OrderDefect> defects() const { return wrong; }
  llvm::ArrayRef<Access> selfConflicts() const { return racing; }
  /// The pairs that the op takes part in ordering, by its first or last link: none for one in the middle of all chains.
  /// Two ops that meet in several ways are listed once for each buffer of the first one and kind of hazard.
  std::vector<const OrderedPair *> orderedBy(const ir::Op &op) const;

  /// math.mma_issue@7
  std::string nameOf(const ir::Op *op) const;
  /// One line: "RAW k: load.copy_issue@3 -> math.mma_issue@2 distance 0, ordered by math.wait@1".
  std::string describe(const OrderedPair &pair) const;

private:
  bool checkAccesses(const ir::Kernel &kernel, AccessTable &table);
  bool checkCluster(const ir::Kernel &kernel);

  std::vector<const ir::Role *> roles;
  std::vector<Points> numberings;
  std::string why;
  std::vector<OrderedPair> found;
  std::vector<OrderDefect> wrong;
  std::vector<Access> racing;
};

} // namespace fagen
