// fagen: what an attention problem takes at the least, and the least time in which a GPU can do it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "lab/cases/problem.h"

#include <string>

namespace fagen::lab {

/// Of any kernel that computes the problem: each visible pair of query and key once, each tensor once.
struct LeastWork {
  double flops = 0; ///< of both products
  double exps = 0;  ///< one a pair
  double bytes = 0; ///< Q, the keys and values that any row sees, O, and LSE when it is written
};
LeastWork leastWork(const Shape &shape, Mask mask, bool lse);

/// Of a GPU, each second; 0: not known.
struct Peaks {
  double tensorFlops = 0, exps = 0, dramBytes = 0;
};
/// Of so many SMs of the GPU that stands for this compute capability (fagen/Target/Gpus.h); only DRAM where none does.
/// `clockHz` is the measured clock of the SMs.
Peaks peaksOf(uint32_t computeCapability, int sms, double clockHz, double dramBytesPerSecond);

/// The least time of each unit when it does nothing else; the floor is that of perfect overlap.
struct Roofline {
  double tensorMicroseconds = 0, expMicroseconds = 0, dramMicroseconds = 0; ///< 0: not known

  double floorMicroseconds() const;
  std::string limit() const; ///< the unit that sets the floor: "tensor", "exp", "dram"; empty: none is known
};
Roofline rooflineOf(const LeastWork &work, const Peaks &peaks);

} // namespace fagen::lab
