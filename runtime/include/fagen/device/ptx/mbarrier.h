// fagen: barriers in shared memory that count arrivals and bytes. PTX ISA, Parallel Synchronization: mbarrier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A barrier is 8 bytes at a multiple of 8. Its phases are 0, 1, 2, ...; a phase completes when its arrivals have come
// and as many bytes as they expect. A wait names a phase by its parity: it returns once the phase with that parity has
// completed, so nobody may be two phases late. Of a fresh barrier the phase before the first, parity 1, counts as
// completed. sm_90.
#pragma once

#include <fagen/device/ptx/site.h>

namespace fagen::device::ptx {

/// `arrivals` in each phase. One thread does it; the others need mbarrier_init_fence() and a barrier after it.
__device__ __forceinline__ void mbarrier_init(unsigned barrier, int arrivals, Site = Site::here()) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// By the thread that made barriers, before others of its cluster and copies use them.
__device__ __forceinline__ void mbarrier_init_fence(Site = Site::here()) {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// One arrival; who waits for the phase sees the accesses before it.
__device__ __forceinline__ void mbarrier_arrive(unsigned barrier, Site = Site::here()) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// One arrival that adds `bytes` to what the phase expects.
__device__ __forceinline__ void mbarrier_arrive_expect(unsigned barrier, int bytes, Site = Site::here()) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

/// One arrival at the barrier at the same address in CTA `rank` of the cluster. Of the accesses before it the other CTA
/// is told only what is complete, as products are after their wait: with .release.cluster, which would tell of stores
/// too, ptxas puts a fence of all memory in front.
__device__ __forceinline__ void mbarrier_arrive_at(unsigned barrier, unsigned rank, Site = Site::here()) {
  asm volatile("{\n\t.reg .b32 remote;\n\t"
               "mapa.shared::cluster.u32 remote, %0, %1;\n\t"
               "mbarrier.arrive.shared::cluster.b64 _, [remote];\n\t}" ::"r"(barrier),
               "r"(rank)
               : "memory");
}

/// Whether the phase of this parity has completed; waits some time for it.
__device__ __forceinline__ bool mbarrier_try_wait(unsigned barrier, unsigned parity, Site = Site::here()) {
  unsigned done;
  asm volatile("{\n\t.reg .pred done;\n\t"
               "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n\tselp.u32 %0, 1, 0, done;\n\t}"
               : "=r"(done)
               : "r"(barrier), "r"(parity)
               : "memory");
  return done != 0;
}

/// Waits until the phase of this parity has completed.
__device__ __forceinline__ void mbarrier_wait(unsigned barrier, unsigned parity, Site = Site::here()) {
  while (!mbarrier_try_wait(barrier, parity)) {
  }
}

} // namespace fagen::device::ptx
