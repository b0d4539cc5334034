// fagen: barriers. PTX ISA, Parallel Synchronization: barrier.cta, bar.warp.sync.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/site.h>

namespace fagen::device::ptx {

/// All threads of the CTA meet; shared and global memory accesses before it are seen after it.
__device__ __forceinline__ void cta_barrier(Site = Site::here()) { asm volatile("barrier.cta.sync 0;" ::: "memory"); }

/// All lanes of the warp meet; memory accesses before it are seen by the warp's lanes after it.
__device__ __forceinline__ void warp_barrier(Site = Site::here()) {
  asm volatile("bar.warp.sync 0xffffffff;" ::: "memory");
}

} // namespace fagen::device::ptx
