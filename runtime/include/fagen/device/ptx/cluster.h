// fagen: CTAs that run together. PTX ISA, Special Registers: %cluster_ctarank; barrier.cluster.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/site.h>

namespace fagen::device::ptx {

/// Index of the CTA in its cluster; 0 without one.
__device__ __forceinline__ unsigned cluster_rank() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// CTAs of the cluster; 1 without one.
__device__ __forceinline__ unsigned cluster_size() {
  unsigned size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}

/// The warp is counted; those who wait see its accesses before.
__device__ __forceinline__ void cluster_arrive(Site = Site::here()) {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

/// Waits until all threads of the cluster have arrived; each arrival has one wait.
__device__ __forceinline__ void cluster_wait(Site = Site::here()) {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

} // namespace fagen::device::ptx
