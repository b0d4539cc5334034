// fagen: what surrounds the products of a warp group, four warps of which the first one's number is a multiple of four.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Order of wgmma (PTX ISA, Asynchronous Warpgroup Level Matrix): fence before the first product and after any other
// access to registers that a product uses; commit closes a group of products; until a wait says that its group is done
// nobody touches the accumulators, the registers of A, or the shared memory that the group reads. sm_90a.
#pragma once

#include <fagen/device/ptx/site.h>

namespace fagen::device::ptx {

/// PTX ISA: wgmma.fence.
__device__ __forceinline__ void wgmma_fence(Site = Site::here()) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

/// PTX ISA: wgmma.commit_group.
__device__ __forceinline__ void wgmma_commit(Site = Site::here()) {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/// Waits until at most kPending of the newest groups are not done. PTX ISA: wgmma.wait_group.
template <int kPending> __device__ __forceinline__ void wgmma_wait(Site = Site::here()) {
  static_assert(kPending >= 0 && kPending <= 7, "a wait leaves 0 to 7 groups");
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// What reads these registers stays after it, what writes them before. No instruction.
template <int kCount> __device__ __forceinline__ void pin_registers(float (&registers)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i)
    asm volatile("" : "+f"(registers[i])::"memory");
}

/// The whole warp group gives registers back: each thread keeps kRegisters, a multiple of 8 from 24 to 256.
/// PTX ISA, Miscellaneous: setmaxnreg.
template <int kRegisters> __device__ __forceinline__ void setmaxnreg_dec(Site = Site::here()) {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0, "a multiple of 8 from 24 to 256");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// The whole warp group takes registers, and waits until the CTA's pool has them.
template <int kRegisters> __device__ __forceinline__ void setmaxnreg_inc(Site = Site::here()) {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0, "a multiple of 8 from 24 to 256");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// Index of the warp group in its CTA, known to the compiler to be the same in all lanes.
__device__ __forceinline__ int warp_group_index() { return __shfl_sync(0xffffffffu, threadIdx.x / 128, 0); }

/// True in one lane of the warp, all of which call it together. PTX ISA: elect.sync.
__device__ __forceinline__ bool elect_one(Site = Site::here()) {
  unsigned elected;
  asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}" : "=r"(elected));
  return elected != 0;
}

} // namespace fagen::device::ptx
