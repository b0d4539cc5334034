// fagen: results to global memory. Rows at or beyond the limit are not written.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ops/softmax.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/threads.h>

namespace fagen::device {

/// Two neighbouring elements, in one access where kVectorBytes allows it.
template <int kVectorBytes, class T>
__device__ __forceinline__ void store_pair(T *target, float low, float high, ptx::Site site) {
  if constexpr (kVectorBytes >= 4) {
    ptx::st_global_u32(target, ptx::round_pair<T>(low, high), site);
  } else {
    ptx::st_global_u16(target, ptx::round_to<T>(low).bits, site);
    ptx::st_global_u16(target + 1, ptx::round_to<T>(high).bits, site);
  }
}

/// Rows of o; `target` is row 0 of the head, the fragment's first row is `first_row`.
template <int kVectorBytes, class T, int kRows, int kColumns>
__device__ __forceinline__ void store_rows(T *target, long long row_stride, const Accumulator<kRows, kColumns> &o,
                                           int first_row, int limit, ptx::Site site = ptx::Site::here()) {
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = static_cast<int>(ptx::recompute(first_row + 16 * slab + 8 * half + ptx::lane_index() / 4));
      if (row >= limit)
        continue;
      T *row_target = target + row * row_stride + ptx::lane_index() % 4 * 2;
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile)
        store_pair<kVectorBytes>(row_target + 8 * tile, o.value[slab][tile][2 * half],
                                 o.value[slab][tile][2 * half + 1], site);
    }
}

/// Log-sum-exp of each row; nothing when the caller gave no pointer. `target` is row 0 of the head.
template <int kRows>
__device__ __forceinline__ void store_lse(float *target, const RowValues<kRows> &m, const RowValues<kRows> &l,
                                          float scale, int first_row, int limit, ptx::Site site = ptx::Site::here()) {
  if (target == nullptr || ptx::lane_index() % 4 != 0)
    return;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + 16 * slab + 8 * half + ptx::lane_index() / 4;
      if (row < limit)
        ptx::st_global_f32(target + row, log_sum_exp(m.value[slab][half], l.value[slab][half], scale), site);
    }
}

} // namespace fagen::device
