// fagen: warps that share the keys of a tile bring their results together through shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each key warp leaves its unnormalised O, its maximum and its sum in a row of `kHeadDimV + 2` f32; row
// key_warp * kTileRows + r belongs to query row r. They are then added in the order of the key warps, so that the same
// inputs give the same bits (the split-K combine of FlashDecoding, within a CTA).
#pragma once

#include <fagen/device/ops/store.h>
#include <fagen/device/tile/shared_tile.h>

namespace fagen::device {

/// The warp's rows, l being whole sums; `row` is the tile row of the fragment's first row plus key_warp * kTileRows.
template <int kRows, int kColumns, class Partial>
__device__ __forceinline__ void store_partial(const Partial &partial, int row, const Accumulator<kRows, kColumns> &o,
                                              const RowValues<kRows> &m, const RowValues<kRows> &l,
                                              ptx::Site site = ptx::Site::here()) {
  const int lane = ptx::lane_index();
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int own_row = row + 16 * slab + 8 * half + lane / 4;
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          ptx::st_shared_f32(partial.address(own_row, 8 * tile + 2 * (lane % 4) + i), o.value[slab][tile][2 * half + i],
                             site);
      if (lane % 4 == 0) {
        ptx::st_shared_f32(partial.address(own_row, kColumns), m.value[slab][half], site);
        ptx::st_shared_f32(partial.address(own_row, kColumns + 1), l.value[slab][half], site);
      }
    }
}

/// Merges the key warps' rows and stores them; element pair e of the tile is thread e % kThreads's. `o` and `lse` are
/// row 0 of the head.
template <int kThreads, int kKeyWarps, int kVectorBytes, class T, class Partial>
__device__ __forceinline__ void store_merged(T *o, long long row_stride, float *lse, const Partial &partial,
                                             float scale, float c, int first_row, int limit,
                                             ptx::Site site = ptx::Site::here()) {
  constexpr int kTileRows = Partial::kRows / kKeyWarps;
  constexpr int kColumns = Partial::kColumns - 2;
  for (int pair = ptx::thread_index(); pair < kTileRows * kColumns / 2; pair += kThreads) {
    const int row = pair / (kColumns / 2);
    const int column = pair % (kColumns / 2) * 2;
    if (first_row + row >= limit)
      continue;
    float m = ptx::negative_infinity();
#pragma unroll
    for (int warp = 0; warp < kKeyWarps; ++warp)
      m = ptx::max(m, ptx::ld_shared_f32(partial.address(warp * kTileRows + row, kColumns), site));
    float low = 0.0f, high = 0.0f, sum = 0.0f;
#pragma unroll
    for (int warp = 0; warp < kKeyWarps; ++warp) {
      const int from = warp * kTileRows + row;
      const float factor =
          ptx::exp2(ptx::mul(ptx::ld_shared_f32(partial.address(from, kColumns), site) - finite_max<true>(m), c));
      sum = ptx::fma(factor, ptx::ld_shared_f32(partial.address(from, kColumns + 1), site), sum);
      low = ptx::fma(factor, ptx::ld_shared_f32(partial.address(from, column), site), low);
      high = ptx::fma(factor, ptx::ld_shared_f32(partial.address(from, column + 1), site), high);
    }
    const float inverse = inverse_sum(sum);
    store_pair<kVectorBytes>(o + (first_row + row) * row_stride + column, ptx::mul(low, inverse),
                             ptx::mul(high, inverse), site);
    if (lse != nullptr && column == 0)
      ptx::st_global_f32(lse + first_row + row, log_sum_exp(m, sum, scale), site);
  }
}

} // namespace fagen::device
