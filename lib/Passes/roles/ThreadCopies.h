// fagen: when what threads copy by cp_async for other roles is told of.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
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
  void place(std::map<const ir::Op *, ir::Ops> &after);

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
  void placeInLoop(const Step &step, std::map<const ir::Op *, ir::Ops> &after) const;
  void placeOnce(llvm::ArrayRef<Fill> fills, std::map<const ir::Op *, ir::Ops> &after) const;

  const OpPlaces &places;
  std::map<const ir::Block *, Step> steps;
};

} // namespace fagen
