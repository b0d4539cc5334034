// fagen: what a warp that nobody disturbs waits for as it goes through a role's ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Analysis/Clocks.h"

#include "llvm/ADT/ArrayRef.h"

#include <vector>

namespace fagen::model {

/// A ring that other warps fill, in one turn of a loop.
struct RingUse {
  double held = 0; ///< share of the turn from the wait for a slot to the arrival that leaves it
  double fill = 0; ///< clocks of the copy engine for a slot
  unsigned stages = 1;
};

struct Chain {
  double clocks = 0;  ///< of a turn
  double waiting = 0; ///< of these, those in which the warp has no instruction
  std::vector<RingUse> rings;
  bool inTurns = false; ///< groups of warps issue their products one after another
};

/// The ops of a loop's body in turn after turn, or with `repeats` false once. A product that was issued runs alongside
/// what follows, until the wait for its group.
Chain chainOf(const ir::Kernel &kernel, const ir::Role &role, llvm::ArrayRef<const ir::Op *> ops, bool repeats,
              const GpuRates &gpu);

/// The copies in bulk that other roles make for waits at this mbarrier: one a buffer.
std::vector<const ir::Op *> copiesFor(const ir::Kernel &kernel, const ir::Role &role, const ir::Buffer *full);

} // namespace fagen::model
