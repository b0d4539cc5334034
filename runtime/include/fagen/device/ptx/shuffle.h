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

} // namespace fagen::device::ptx
