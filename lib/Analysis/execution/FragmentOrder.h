// fagen: whether a warp's products and its own ops use its registers in order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A product reads and writes fragments until its group is waited for. Nobody else reaches them: the warp's own course
// says all, whoever else runs and whoever is faster. A course is what the warps of a timeline do with fragments and
// products, in order. Runs share theirs, so each is followed once, for one warp: all do the same.
#pragma once

#include "Execution.h"

namespace fagen {

class FragmentOrder {
public:
  FragmentOrder(const ExecutionPlan &plan, AccessTable &table, const ExecutionObserver &observer);
  /// `course`: places of the role, each followed by the positions of the op's fragments that have slots.
  void follow(unsigned role, llvm::ArrayRef<int64_t> course);

private:
  /// The last access of a kind in a slot.
  struct Instance {
    unsigned step = 0;  ///< on the course, from 1; 0: there was none
    unsigned group = 0; ///< of products, from 1; 0: it is no product's
    int64_t position = 0;
  };
  /// What a course has done so far with a fragment that has no slots.
  struct Use {
    uint64_t accesses = 0;          ///< by their numbers among the fragment's
    unsigned step = 0, product = 0; ///< the last step of its own, the last group of products
  };
  /// Of an access: which fragment's, and its bit there; none where the fragment has slots, or more accesses than bits.
  struct Member {
    unsigned fragment = 0;
    uint64_t bit = 0;
  };
  void findMembers();
  bool execute(const PlannedOp &op);
  bool isSettled(const Access &second) const;
  void check(const Access &second, int64_t position);
  void compare(const Access &first, const Instance &instance, const Access &second, int64_t position);
  void remember(const Access &access, int64_t position);
  Instance &instanceOf(const Access &access, unsigned slot) { return instances[firstInstance[access.index] + slot]; }

  const ExecutionPlan &plan;
  AccessTable &table;
  const ExecutionObserver &observer;
  std::vector<unsigned> firstInstance; ///< by access
  std::vector<int64_t> told;           ///< by first and second access: the smallest distance that the observer knows of
  std::vector<Member> members;         ///< by access
  std::vector<uint64_t> compared;      ///< by access: those of its fragment that it was compared with
  // Of the course:
  std::vector<Instance> instances;
  std::vector<Use> uses;        ///< by fragment
  unsigned step = 0, fence = 0; ///< the step after the last fence
  unsigned closed = 0;          ///< groups of products
  Known complete;               ///< the last of them that was waited for
};

} // namespace fagen
