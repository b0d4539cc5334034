// fagen: a kernel with one barrier or wait less, and what the analysis says of it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mutants are made so that they can be repeated at run time (fagen-run mutate): each is a change at one site. If the
// analysis is right, a run notices exactly the ones that it calls needed.
#pragma once

#include "fagen/IR/IR.h"

#include <string>
#include <vector>

namespace fagen {

/// One barrier or wait, changed.
struct Mutant {
  enum class Action : uint8_t {
    Disable, ///< not there
    Weaken,  ///< a copy_wait lets one group more be outstanding; a barrier of several warps is one of each warp
    Move     ///< before the op that precedes it in its block, or after the one that follows
  };
  Action action = Action::Disable;
  const ir::Op *op = nullptr;
  unsigned pending = 0;         ///< of a weakened copy_wait
  const ir::Op *over = nullptr; ///< of a moved one: the nearest op that touches shared memory or synchronises
  bool isLater = false;         ///< moved after `over`, else before it

  bool isNeeded = false; ///< a hazard is open that the kernel itself covers
  std::string why = {};  ///< that hazard: "RAW k: copy_issue@5 -> mma@12, cta, no barrier between (key_tiles = 3)"
};

/// Every mutant of every site of a kernel with final barriers, in program order, judged by a hazard analysis of the
/// changed kernel. Ops are named as in the unchanged one, which is left as it was.
std::vector<Mutant> judgeMutants(ir::Kernel &kernel);

} // namespace fagen
