// fagen: clocks of an SM's units, and of CTAs that share them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Clocks.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

using namespace fagen;
using namespace fagen::model;

// Where these come from: docs/internals/Model.md.
static constexpr double kBarrierClocks = 20;
/// How units hide each other, and throughput and latency: 1 would add them up, infinity take the longest.
struct Hiding {
  double units, all;
};
static constexpr Hiding kHiding = {1.7, 2.75};
/// Where products are asked for, or the copy engine brings tiles: these hide most of what runs meanwhile, and what is
/// left are instructions that warps issue one after another. Groups that take turns ask for products when no other
/// does.
static constexpr Hiding kAskedHiding = {1.2, 4}, kHidingInTurns = {1.2, 8};
/// What a wavefront of a copy costs in addition to its use of shared memory.
static constexpr double kCopyClocks = 0.48;

double Clocks::longest() const { return std::max({tensor + products, exp, fp32, shared, copy, bulk}); }

const char *Clocks::limit() const {
  const double most = longest();
  return most == 0                   ? "latency"
         : most == tensor + products ? "tensor"
         : most == shared            ? "shared"
         : most == exp               ? "exp"
         : most == fp32              ? "fp32"
                                     : "copy";
}

Clocks model::clocksOf(const Work &work, const GpuRates &gpu) {
  Clocks clocks;
  clocks.tensor = work.tensorFlops / gpu.mmaSyncFlops + work.tensorF16Flops / gpu.mmaSyncF16Flops;
  clocks.exp = work.exps / gpu.exps;
  clocks.fp32 = work.fp32 / gpu.fp32 + work.halfRate / gpu.halfRate;
  clocks.shared = work.wavefronts * 128 / gpu.sharedBytes;
  clocks.copy = work.copiedWavefronts * kCopyClocks;
  if (work.askedFlops != 0)
    clocks.products = std::max(work.askedFlops / gpu.tensorFlops, work.askedWavefronts * 128 / gpu.sharedBytes);
  if (work.bulkBytes != 0)
    clocks.bulk = work.bulkBytes / gpu.bulkBytes;
  clocks.latency = work.barriers * kBarrierClocks + work.loadRounds * kLoadClocks;
  return clocks;
}

Clocks &model::operator+=(Clocks &clocks, const Clocks &other) {
  clocks.tensor += other.tensor;
  clocks.exp += other.exp;
  clocks.fp32 += other.fp32;
  clocks.shared += other.shared;
  clocks.copy += other.copy;
  clocks.products += other.products;
  clocks.bulk += other.bulk;
  clocks.latency += other.latency;
  return clocks;
}

/// More than the longest, less than all one after the other.
static double norm(std::initializer_list<double> clocks, double exponent) {
  double sum = 0;
  for (const double each : clocks)
    sum += std::pow(each, exponent);
  return std::pow(sum, 1 / exponent);
}

double model::together(const Clocks &each, unsigned ctas, unsigned warps, bool inTurns) {
  const Hiding &hiding = each.products == 0 && each.bulk == 0 ? kHiding : inTurns ? kHidingInTurns : kAskedHiding;
  const double units = norm({each.tensor, each.exp, each.fp32, each.shared, each.copy}, hiding.units);
  // A warp has its scheduler's units, and does one thing after the other.
  const double alone = (each.tensor + each.exp + each.fp32) * kSchedulers / warps + each.latency;
  return norm({ctas * units, ctas * each.products, ctas * each.bulk, alone}, hiding.all);
}
