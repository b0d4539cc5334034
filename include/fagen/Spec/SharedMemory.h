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

struct MeasuredSchedule {
  SharedMemory shared;
  RegisterFigures figures;
};

class SharedMeter {
public:
  virtual ~SharedMeter() = default;
  /// What each variant takes. They break no other rule.
  virtual std::vector<MeasuredSchedule> measure(llvm::ArrayRef<const Variant *> variants) = 0;
};

/// Asks the meter, and notes in the variants' schedules what it answers.
void noteMeasures(SharedMeter &meter, llvm::ArrayRef<Variant *> variants);

} // namespace fagen
