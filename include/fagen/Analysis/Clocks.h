// fagen: clocks of an SM's units, and of CTAs that share them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Analysis/Work.h"
#include "fagen/Target/Gpus.h"

namespace fagen::model {

/// What a thread that stands still for global memory waits, once (docs/internals/Model.md).
constexpr double kLoadClocks = 400;
/// Of an SM; each issues for a quarter of its warps.
constexpr double kSchedulers = 4;

/// Clocks of an SM's units for some work of one CTA.
struct Clocks {
  double tensor = 0, exp = 0, fp32 = 0, shared = 0, copy = 0;
  double products = 0; ///< of the tensor cores, or of shared memory where it takes longer, for products that are issued
  double bulk = 0;     ///< of the copy engine
  double latency = 0;  ///< in which the CTA's warps ask nothing of any unit
  double longest() const;
  const char *limit() const; ///< which unit is busy longest
};
Clocks clocksOf(const Work &work, const GpuRates &gpu);
Clocks &operator+=(Clocks &clocks, const Clocks &other);

/// Clocks until `ctas` CTAs of an SM, of so many warps each, have all done this once. Two bounds, and more than either:
/// what the units need for all CTAs, and how long a warp is busy that nobody disturbs.
/// `inTurns`: groups of these warps issue their products in turns.
double together(const Clocks &each, unsigned ctas, unsigned warps, bool inTurns = false);

} // namespace fagen::model
