// fagen: bulk tensor copies between global and shared memory. PTX ISA, Data Movement: cp.async.bulk.tensor.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One thread issues a copy of the map's box at the coordinates `at`, dimension 0 first, whose coordinate is a multiple
// of 16 bytes (else the instruction is illegal). Elements outside the tensor are loaded as zeros and not stored; a
// store may not begin before the tensor. Shared addresses are multiples of 128; of swizzled boxes of 1024, 512 or 256
// where the pattern is to begin with a row. sm_90.
#pragma once

#include <fagen/device/ptx/site.h>
#include <fagen/device/tensor_map.h>

namespace fagen::device::ptx {

/// How long the L2 cache should keep what a copy brings.
enum class CacheHint : unsigned long long {
  kNormal = 0x1000000000000000ull,
  kEvictFirst = 0x12F0000000000000ull,
  kEvictLast = 0x14F0000000000000ull
};

/// Fetches the map itself, so that the first copy need not wait for it.
__device__ __forceinline__ void tma_prefetch_map(const TensorMap &map, Site = Site::here()) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// A box to shared memory. When it has landed its bytes are counted at `barrier`, all of them, inside the tensor or
/// not.
template <int kRank>
__device__ __forceinline__ void tma_load(unsigned target, const TensorMap &map, const int (&at)[kRank],
                                         unsigned barrier, CacheHint hint = CacheHint::kNormal, Site = Site::here()) {
  static_assert(kRank >= 2 && kRank <= 5, "a bulk tensor copy has 2 to 5 dimensions");
  const unsigned long long policy = static_cast<unsigned long long>(hint);
  if constexpr (kRank == 2)
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%4, %5}], [%2], %3;" ::"r"(target),
                 "l"(&map), "r"(barrier), "l"(policy), "r"(at[0]), "r"(at[1])
                 : "memory");
  else if constexpr (kRank == 3)
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%4, %5, %6}], [%2], %3;" ::"r"(target),
                 "l"(&map), "r"(barrier), "l"(policy), "r"(at[0]), "r"(at[1]), "r"(at[2])
                 : "memory");
  else if constexpr (kRank == 4)
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%4, %5, %6, %7}], [%2], %3;" ::"r"(target),
                 "l"(&map), "r"(barrier), "l"(policy), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
                 : "memory");
  else
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint "
                 "[%0], [%1, {%4, %5, %6, %7, %8}], [%2], %3;" ::"r"(target),
                 "l"(&map), "r"(barrier), "l"(policy), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
                 : "memory");
}

/// The same to every CTA of the cluster whose bit is set in `ctas`: its bytes land, and are counted, at the same
/// addresses in each of them.
template <int kRank>
__device__ __forceinline__ void tma_load_multicast(unsigned target, const TensorMap &map, const int (&at)[kRank],
                                                   unsigned barrier, unsigned short ctas,
                                                   CacheHint hint = CacheHint::kNormal, Site = Site::here()) {
  static_assert(kRank >= 2 && kRank <= 5, "a bulk tensor copy has 2 to 5 dimensions");
  const unsigned long long policy = static_cast<unsigned long long>(hint);
  if constexpr (kRank == 2)
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                 ".L2::cache_hint [%0], [%1, {%5, %6}], [%2], %3, %4;" ::"r"(target),
                 "l"(&map), "r"(barrier), "h"(ctas), "l"(policy), "r"(at[0]), "r"(at[1])
                 : "memory");
  else if constexpr (kRank == 3)
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                 ".L2::cache_hint [%0], [%1, {%5, %6, %7}], [%2], %3, %4;" ::"r"(target),
                 "l"(&map), "r"(barrier), "h"(ctas), "l"(policy), "r"(at[0]), "r"(at[1]), "r"(at[2])
                 : "memory");
  else if constexpr (kRank == 4)
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                 ".L2::cache_hint [%0], [%1, {%5, %6, %7, %8}], [%2], %3, %4;" ::"r"(target),
                 "l"(&map), "r"(barrier), "h"(ctas), "l"(policy), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
                 : "memory");
  else
    asm volatile("cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
                 ".L2::cache_hint [%0], [%1, {%5, %6, %7, %8, %9}], [%2], %3, %4;" ::"r"(target),
                 "l"(&map), "r"(barrier), "h"(ctas), "l"(policy), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]),
                 "r"(at[4])
                 : "memory");
}

/// A box from shared memory, which must have been made visible by fence_proxy_async(); what lies outside the tensor is
/// left out. It belongs to the thread's open group.
template <int kRank>
__device__ __forceinline__ void tma_store(const TensorMap &map, const int (&at)[kRank], unsigned source,
                                          Site = Site::here()) {
  static_assert(kRank >= 2 && kRank <= 5, "a bulk tensor copy has 2 to 5 dimensions");
  if constexpr (kRank == 2)
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map),
                 "r"(source), "r"(at[0]), "r"(at[1])
                 : "memory");
  else if constexpr (kRank == 3)
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
                 "r"(source), "r"(at[0]), "r"(at[1]), "r"(at[2])
                 : "memory");
  else if constexpr (kRank == 4)
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
                 "r"(source), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3])
                 : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map),
        "r"(source), "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4])
        : "memory");
}

/// Closes the group of this thread's stores since the last commit.
__device__ __forceinline__ void tma_commit(Site = Site::here()) {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

/// Waits until at most kPending of this thread's newest groups still read shared memory.
template <int kPending> __device__ __forceinline__ void tma_wait_read(Site = Site::here()) {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kPending) : "memory");
}

/// Waits until at most kPending of this thread's newest groups are not complete: the others' results are visible.
template <int kPending> __device__ __forceinline__ void tma_wait(Site = Site::here()) {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(kPending) : "memory");
}

/// This thread's writes to shared memory before it are seen by later bulk copies and warp-group products, of this
/// thread or of those that a barrier tells. PTX ISA: membar, fence.proxy.async.
__device__ __forceinline__ void fence_proxy_async(Site = Site::here()) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

} // namespace fagen::device::ptx
