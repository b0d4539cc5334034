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

/// Whole warps of `threads` threads meet at barrier `id`, 1 to 15; the accesses before it of all of them are seen after
/// it.
__device__ __forceinline__ void named_barrier(int id, int threads, Site = Site::here()) {
  asm volatile("barrier.cta.sync.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// The warp is counted at the barrier and goes on: those that wait there see its accesses before, it learns nothing.
__device__ __forceinline__ void named_barrier_arrive(int id, int threads, Site = Site::here()) {
  asm volatile("barrier.cta.arrive.aligned %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

} // namespace fagen::device::ptx
