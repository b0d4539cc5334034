// fagen: what a kernel will take of an SM, estimated from its plan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/Target/Target.h"

namespace fagen {

/// How many CTAs an SM holds at once, by shared memory, registers, warps and CTA slots, whichever is scarcest.
struct Occupancy {
  unsigned ctasPerSm = 0;
  const char *limit = ""; ///< which one that is
};
Occupancy occupancyOf(unsigned registers, unsigned threads, uint64_t sharedBytes, const TargetInfo &target);

struct ResourceEstimate {
  unsigned registers =
      0; ///< a thread: fragments plus a constant for addresses and temporaries; ptxas has the last word
  unsigned ctasPerSm = 0; ///< of Occupancy
  const char *limit = "";
  /// What a thread's fragments and what no kernel does without need, however the compiler orders it, and what a thread
  /// that computes may have: with more than that every step spills.
  unsigned leastRegisters = 0, mostRegisters = 0;
};

/// Of a kernel with so many bytes of shared memory. Never fails: one that does not fit at all has 0 CTAs an SM.
ResourceEstimate estimateResources(const ir::Kernel &kernel, uint64_t sharedBytes, const TargetInfo &target);

} // namespace fagen
