// fagen: values exchanged between the lanes of a warp. PTX ISA, Data Movement: shfl.sync.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/site.h>

namespace fagen::device::ptx {

/// The value of lane (own lane xor mask); all 32 lanes take part. Orders no memory.
__device__ __forceinline__ float shuffle_xor(float value, int mask, Site = Site::here()) {
  float result;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=f"(result) : "f"(value), "r"(mask));
  return result;
}

__device__ __forceinline__ unsigned shuffle_xor(unsigned value, int mask, Site = Site::here()) {
  unsigned result;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 0x1f, 0xffffffff;" : "=r"(result) : "r"(value), "r"(mask));
  return result;
}

/// Whether the predicate holds in any lane of the warp; all 32 take part. Orders no memory. PTX ISA: vote.sync.
__device__ __forceinline__ bool any(bool predicate, Site = Site::here()) {
  int result;
  asm volatile("{\n\t.reg .pred p, q;\n\t"
               "setp.ne.s32 p, %1, 0;\n\tvote.sync.any.pred q, p, 0xffffffff;\n\tselp.s32 %0, 1, 0, q;\n\t}"
               : "=r"(result)
               : "r"(static_cast<int>(predicate)));
  return result != 0;
}

} // namespace fagen::device::ptx
