// fagen: rates of the GPUs that times are predicted for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generated from Targets.td by fagen-tblgen. Do not edit.
#pragma once

namespace fagen {

struct GpuRates {
  const char *name;
  /// compute capability, 10 * major + minor
  unsigned sm;
  /// multiprocessors that are enabled
  unsigned sms;
  /// of an SM under load
  unsigned clockMhz;
  /// of an SM and clock, by its fastest instruction
  unsigned tensorFlops;
  /// by mma.sync, sums in f32
  unsigned mmaSyncFlops;
  /// by mma.sync, sums in f16
  unsigned mmaSyncF16Flops;
  /// special functions of an SM and clock
  unsigned exps;
  /// operations of an SM and clock
  unsigned fp32;
  /// maxima and conversions of an SM and clock
  unsigned halfRate;
  /// of an SM and clock
  unsigned sharedBytes;
  /// of the GPU, 1e9 bytes a second
  unsigned dramGBs;
  /// of an SM and clock, from the L2 by the copy engine; 0: there is none
  unsigned bulkBytes;
  /// clocks from asking the copy engine to its first bytes
  unsigned bulkLatency;
  /// least rank correlation at a shape, percent
  unsigned unmaskedRank;
  /// over so many variants
  unsigned unmaskedVariants;
  /// the same with a causal mask
  unsigned causalRank;
  /// over so many variants
  unsigned causalVariants;
};

/// The first of a compute capability stands for it.
constexpr GpuRates kGpuRates[] = {
    {"A100", 80, 108, 1410, 2048, 2048, 2048, 16, 64, 64, 128, 1555, 0, 0, 0, 0, 0, 0},
    {"A10", 86, 72, 1695, 1024, 1024, 1024, 16, 128, 64, 128, 600, 0, 0, 0, 0, 0, 0},
    {"RTX 3090", 86, 82, 1695, 512, 512, 1024, 16, 128, 64, 128, 936, 0, 0, 0, 0, 0, 0},
    {"L4", 89, 58, 2040, 1024, 1024, 1024, 16, 128, 64, 128, 300, 0, 0, 0, 0, 0, 0},
    {"RTX 4090", 89, 128, 2520, 512, 512, 1024, 16, 128, 64, 128, 1008, 0, 0, 0, 0, 0, 0},
    {"H200", 90, 132, 1980, 4096, 2729, 2729, 16, 128, 64, 128, 4630, 64, 800, 88, 200, 60, 72},
    {"RTX 5090", 120, 170, 2407, 512, 512, 1024, 16, 128, 64, 128, 1792, 64, 800, 0, 0, 0, 0},
};

constexpr const GpuRates *ratesOf(unsigned sm) {
  for (const GpuRates &rates : kGpuRates)
    if (rates.sm == sm)
      return &rates;
  return nullptr;
}

} // namespace fagen
