// fagen: asynchronous copies from global to shared memory. PTX ISA, Data Movement: cp.async.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/site.h>

namespace fagen::device::ptx {

/// Copies kBytes (4, 8 or 16) when `valid`, else fills them with zero; both addresses are multiples of kBytes.
/// `source` must be readable memory's address form, but nothing is read when not valid.
template <int kBytes>
__device__ __forceinline__ void cp_async(unsigned target, const void *source, bool valid, Site = Site::here()) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
  const int source_bytes = valid ? kBytes : 0;
  if constexpr (kBytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source), "r"(source_bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(target), "l"(source), "n"(kBytes),
                 "r"(source_bytes)
                 : "memory");
}

/// Closes the group of this thread's copies issued since the last commit. PTX ISA: cp.async.commit_group.
__device__ __forceinline__ void cp_async_commit(Site = Site::here()) {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Waits until at most kPending of this thread's newest groups are outstanding. PTX ISA: cp.async.wait_group.
template <int kPending> __device__ __forceinline__ void cp_async_wait(Site = Site::here()) {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

} // namespace fagen::device::ptx
