// fagen: clocks and where a warp runs. PTX ISA, Special Registers: %clock, %clock64, %globaltimer, %smid.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::device::ptx {

/// Low half of the SM's clock. Memory accesses and other volatile instructions stay on their side of it.
__device__ __forceinline__ unsigned clock32() {
  unsigned clocks;
  asm volatile("mov.u32 %0, %%clock;" : "=r"(clocks)::"memory");
  return clocks;
}

/// The SM's clock.
__device__ __forceinline__ unsigned long long clock64() {
  unsigned long long clocks;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(clocks)::"memory");
  return clocks;
}

/// The GPU's time in nanoseconds, in steps of up to a microsecond; all SMs share it.
__device__ __forceinline__ unsigned long long global_nanoseconds() {
  unsigned long long nanoseconds;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
  return nanoseconds;
}

/// The SM that the CTA runs on.
__device__ __forceinline__ unsigned sm_index() {
  unsigned index;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(index));
  return index;
}

} // namespace fagen::device::ptx
