// fagen: clocks of an SM's units, and of CTAs that share them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Clocks.h"

#include <algorithm>
#include <cmath>

using namespace fagen;
using namespace fagen::model;

// Where these come from: docs/Model.md.
static constexpr double kBarrierClocks = 20;
/// How units hide each other, and throughput and latency: 1 would add them up, infinity take the longest.
static constexpr double kUnitOverlap = 1.7, kWarpOverlap = 2.75;
/// What a wavefront of a copy costs beside its use of shared memory.
static constexpr double kCopyClocks = 0.48;
static constexpr double kSchedulers = 4;

double Clocks::longest() const { return std::max({tensor, exp, fp32, shared, copy}); }

const char *Clocks::limit() const {
  const double most = longest();
  return most == tensor ? "tensor" : most == shared ? "shared" : most == exp ? "exp" : most == fp32 ? "fp32" : "copy";
}

Clocks model::clocksOf(const Work &work, const GpuRates &gpu) {
  Clocks clocks;
  clocks.tensor = work.tensorFlops / gpu.mmaSyncFlops + work.tensorF16Flops / gpu.mmaSyncF16Flops;
  clocks.exp = work.exps / gpu.exps;
  clocks.fp32 = work.fp32 / gpu.fp32 + work.halfRate / gpu.halfRate;
  clocks.shared = work.wavefronts * 128 / gpu.sharedBytes;
  clocks.copy = work.copiedWavefronts * kCopyClocks;
  clocks.latency = work.barriers * kBarrierClocks + work.loadRounds * kLoadClocks;
  return clocks;
}

double model::together(const Clocks &each, unsigned ctas, unsigned warps) {
  auto power = [](double clocks) { return std::pow(clocks, kUnitOverlap); };
  const double units =
      ctas * std::pow(power(each.tensor) + power(each.exp) + power(each.fp32) + power(each.shared) + power(each.copy),
                      1 / kUnitOverlap);
  // A warp has its scheduler's units, and does one thing after the other.
  const double alone = (each.tensor + each.exp + each.fp32) * kSchedulers / warps + each.latency;
  return std::pow(std::pow(units, kWarpOverlap) + std::pow(alone, kWarpOverlap), 1 / kWarpOverlap);
}
