// fagen: the shared memory of schedules, and whom the checks of a spec ask for it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing here computes it: what a schedule takes is what its lowered kernel has. Lowering stands above lib/Spec
// (fagen/Lower/Lower.h), so it comes in as a SharedMeter.
#pragma once

#include "llvm/ADT/ArrayRef.h"

#include <cstdint>
#include <string>
#include <vector>

namespace fagen {

struct Variant;

struct SharedBuffer {
  std::string name;   ///< as in the IR
  uint64_t bytes = 0; ///< of all stages
  bool overRing = false;
  bool isTile = true; ///< else it counts arrivals, or holds a number
};

/// Of one CTA.
struct SharedMemory {
  std::vector<SharedBuffer> buffers; ///< in the order of the kernel's
  uint64_t total = 0;                ///< 0: not measured
};

/// Of a thread, and of an SM: estimated from the lowered kernel (fagen/Analysis/Resources.h).
struct RegisterFigures {
  unsigned registers = 0; ///< 0: not measured
  unsigned leastRegisters = 0, mostRegisters = 0;
  unsigned ctasPerSm = 0;
};

class SharedMeter {
public:
  virtual ~SharedMeter() = default;
  /// Fills `schedule.shared` and `schedule.figures`, and what of the schedule follows from it, of each variant. They
  /// break no other rule.
  virtual void measure(llvm::ArrayRef<Variant *> variants) = 0;
};

} // namespace fagen
