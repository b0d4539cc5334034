// fagen: how long a kernel will take on a GPU, from the ops of its IR (docs/Model.md).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Analysis/Work.h"
#include "fagen/Target/Gpus.h"
#include "fagen/Target/Target.h"

#include <optional>
#include <string>
#include <vector>

namespace fagen::model {

struct Shape {
  int64_t batch = 0, heads = 0, kvHeads = 0, seqQ = 0, seqKv = 0, headDim = 0;
  std::string str() const; ///< as parseShape reads it
};
/// b,h,hkv,sq,sk,d, as fagen-run writes it.
std::optional<Shape> parseShape(llvm::StringRef text);

/// Clocks of an SM's units for some work of one CTA.
struct Clocks {
  double tensor = 0, exp = 0, fp32 = 0, shared = 0, l2 = 0;
  double latency = 0; ///< of barriers, waits and round trips
  double longest() const;
  const char *limit() const; ///< which unit is busy longest
};
Clocks clocksOf(const Work &work, const GpuRates &gpu);

/// Clocks until `ctas` CTAs of an SM, of so many warps each, have all done this once: the busiest unit's, the others'
/// as far as the warps of a scheduler do not hide them, and latencies as far as other CTAs do not.
double together(const Clocks &each, unsigned ctas, unsigned warps);

/// A loop, or all ops outside of loops, in a CTA.
struct Section {
  std::string name;
  Work work;
  Clocks clocks;
  double steps = 0; ///< of a CTA on average
  double together = 0;
};

struct Prediction {
  unsigned registers = 0, ctasPerSm = 0;
  const char *occupancyLimit = "";
  uint64_t sharedBytes = 0;
  uint64_t ctas = 0;
  unsigned resident = 0; ///< CTAs an SM while the grid is large enough
  double waves = 0;      ///< CTAs / (SMs * ctasPerSm)
  double tail = 0;       ///< share of the last wave's places that are taken
  std::vector<Section> sections;
  double dramMicroseconds = 0;
  double microseconds = 0;
};

/// None for other backends than mma_sync, for roles that divide the work, for kernels that do not fit, and for more
/// than 2^24 CTAs.
std::optional<Prediction> predict(const ir::Kernel &kernel, const GpuRates &gpu, const TargetInfo &limits,
                                  const Shape &shape);

} // namespace fagen::model
