// fagen: whether a variant's tiles fit registers and shared memory, and the nearest that do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Spec/Spec.h"

#include <limits>

namespace fagen {

/// Registers of a thread that computes, of a measured variant: what its share of the tiles takes at least, what it may
/// have, and what it needs besides. With less than `besides` it is known to spill, with `margin` it is known not to.
struct ThreadRegisters {
  unsigned least, most, besides, margin;
  bool areTooFew() const { return least + besides > most; }
  bool areEnough() const { return least + margin <= most; }
};
ThreadRegisters registersOf(const Variant &variant);

/// What a schedule may take, where that is less than its target has.
struct FitLimits {
  uint64_t sharedBytes = std::numeric_limits<uint64_t>::max();
  unsigned registers = std::numeric_limits<unsigned>::max();      ///< a thread
  unsigned leastRegisters = std::numeric_limits<unsigned>::max(); ///< of its share of the tiles
};

/// "with tile = 64 x 64 and warps = 8 it is 98304 B of shared memory and at least 168 registers a thread, which fit":
/// the nearest schedule that breaks no rule and takes no more than the limits; empty when none is found.
std::string nearestThatFits(const Variant &variant, SharedMeter &meter, const FitLimits &limits = {});

} // namespace fagen
