// fagen: when what threads copy by cp_async for other roles is told of.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A thread's copies go on alongside it, and only it can wait for them. So it asks for more before it waits: of a ring
// with S slots one is used and one is told of, and the others are on their way.
//
//   step j     copy_issue k[j]; copy_commit
//              copy_issue v[j]; copy_commit
//              copy_wait {pending = 2 late + 1}        k[j - late] has landed, late = S - 2
//              fence async_proxy; arrive k_full[j - late]
//              copy_wait {pending = 2 late}            v[j - late] has landed
//              fence async_proxy; arrive v_full[j - late]
//   at last    the same for the last `late` positions
//
// What is copied once, or in a loop of at most one step, is told of when all of that is asked for that no other loop
// comes between.
//
// An arrival that follows the copies by itself (cp.async.mbarrier.arrive.noinc) would need no wait. But it tells of
// copies alone: of a row that ends within a vector threads store the elements, and for products they fence what they
// wrote. Both want a thread that has seen its copies land.
#pragma once

#include "Handovers.h"

#include <map>

namespace fagen {

class ThreadCopies {
public:
  explicit ThreadCopies(const OpPlaces &places) : places(places) {}

  /// `tell` makes the ops that tell of a position whose copies have landed.
  using Tell = std::function<ir::Ops(ir::Expr position)>;
  void add(const HandoverSite &fills, const ir::Count &stages, Tell tell);
  /// Ops that are to stand after others, of all that were added.
  void place(std::map<const ir::Op *, ir::Ops> &behind);

private:
  /// A group of copies in a block.
  struct Fill {
    const ir::Op *last; ///< op of the block: a copy, or the loop of one step that has it
    ir::Expr position;  ///< null: it has none
    ir::Expr condition; ///< null: it is there
    unsigned late = 0;  ///< steps
    Tell tell;
  };
  struct Step {
    const ir::Op *loop = nullptr; ///< null: each is there once
    std::vector<Fill> fills;
  };

  size_t indexOf(const Fill &fill) const { return places.of(*fill.last).index; }
  void sort(Step &step) const;
  bool loopsBetween(const ir::Block &block, const Fill &first, const Fill &second) const;
  void placeInLoop(const Step &step, std::map<const ir::Op *, ir::Ops> &behind) const;
  void placeOnce(llvm::ArrayRef<Fill> fills, std::map<const ir::Op *, ir::Ops> &behind) const;

  const OpPlaces &places;
  std::map<const ir::Block *, Step> steps;
};

} // namespace fagen
