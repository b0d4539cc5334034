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
  /// of an SM and clock
  unsigned l2Bytes;
  /// of the GPU, 1e9 bytes a second
  unsigned dramGBs;
};

/// The first of a compute capability stands for it.
constexpr GpuRates kGpuRates[] = {
    {"A100", 80, 108, 1410, 2048, 2048, 2048, 16, 64, 64, 128, 40, 1555},
    {"A10", 86, 72, 1695, 1024, 1024, 1024, 16, 128, 64, 128, 32, 600},
    {"RTX 3090", 86, 82, 1695, 512, 512, 1024, 16, 128, 64, 128, 32, 936},
    {"L4", 89, 58, 2040, 1024, 1024, 1024, 16, 128, 64, 128, 32, 300},
    {"RTX 4090", 89, 128, 2520, 512, 512, 1024, 16, 128, 64, 128, 32, 1008},
    {"H200", 90, 132, 1980, 4096, 2729, 2729, 16, 128, 64, 128, 40, 4630},
};

constexpr const GpuRates *ratesOf(unsigned sm) {
  for (const GpuRates &rates : kGpuRates)
    if (rates.sm == sm)
      return &rates;
  return nullptr;
}

} // namespace fagen
