// fagen: warps that share the keys of a tile bring their results together through shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each key warp leaves its unnormalised O, its maximum m and its sum l in a row of `kHeadDimV + kPartialExtra` f32; row
// key_warp * kTileRows + r belongs to query row r. After the columns of O each lane of a quad has a pair (m, l) of its
// own, of which the first is read: so all lanes store alike, and the rows have the stride without bank conflicts. They
// are then added in the order of the key warps, so that the same inputs give the same bits (the split-K combine of
// FlashDecoding, within a CTA).
#pragma once

#include <fagen/device/ops/store.h>
#include <fagen/device/tile/shared_tile.h>

namespace fagen::device {

/// The warp's rows, l being whole sums; `row` is the tile row of the fragment's first row plus key_warp * kTileRows.
template <int kRows, int kColumns, class Partial>
__device__ __forceinline__ void store_partial(const Partial &partial, int row, const Accumulator<kRows, kColumns> &o,
                                              const RowValues<kRows> &m, const RowValues<kRows> &l,
                                              ptx::Site site = ptx::Site::here()) {
  static_assert(Partial::kColumns == kColumns + static_cast<int>(kPartialExtra),
                "a row holds O, then pairs of m and l");
  const int lane = ptx::lane_index();
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int own_row = row + 16 * slab + 8 * half + lane / 4, own_column = 2 * (lane % 4);
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile) {
        const float pair[2] = {o.value[slab][tile][2 * half], o.value[slab][tile][2 * half + 1]};
        ptx::st_shared_f32x2(partial.address(own_row, 8 * tile + own_column), pair, site);
      }
      const float pair[2] = {m.value[slab][half], l.value[slab][half]};
      ptx::st_shared_f32x2(partial.address(own_row, kColumns + own_column), pair, site);
    }
}

/// Two neighbouring elements of a row, not normalised, with the row's maximum and sum.
struct MergedPair {
  float values[2];
  float m;
  float sum;
};

/// Of the key warps' rows, added in the order of the warps.
template <int kKeyWarps, class Partial>
__device__ __forceinline__ MergedPair merge_pair(const Partial &partial, int row, int column, float c, ptx::Site site) {
  constexpr int kTileRows = Partial::kRows / kKeyWarps;
  constexpr int kColumns = Partial::kColumns - static_cast<int>(kPartialExtra);
  MergedPair merged = {{0.0f, 0.0f}, ptx::negative_infinity(), 0.0f};
  float of_row[kKeyWarps][2]; // m and l
#pragma unroll
  for (int warp = 0; warp < kKeyWarps; ++warp) {
    ptx::ld_shared_f32x2(of_row[warp], partial.address(warp * kTileRows + row, kColumns), site);
    merged.m = ptx::max(merged.m, of_row[warp][0]);
  }
#pragma unroll
  for (int warp = 0; warp < kKeyWarps; ++warp) {
    float values[2];
    ptx::ld_shared_f32x2(values, partial.address(warp * kTileRows + row, column), site);
    const float factor = ptx::exp2(ptx::mul(of_row[warp][0] - finite_max<true>(merged.m), c));
    merged.sum = ptx::fma(factor, of_row[warp][1], merged.sum);
    merged.values[0] = ptx::fma(factor, values[0], merged.values[0]);
    merged.values[1] = ptx::fma(factor, values[1], merged.values[1]);
  }
  return merged;
}

/// Merges the key warps' rows and stores them; element pair e of the tile is thread e % kThreads's. `o` and `lse` are
/// row 0, from which `o_rows` and `lse_rows` (tile/rows.h) lead to the others.
template <int kThreads, int kKeyWarps, int kVectorBytes, class T, class RowMap, class LseRowMap, class Partial>
__device__ __forceinline__ void store_merged(T *o, const RowMap &o_rows, float *lse, const LseRowMap &lse_rows,
                                             const Partial &partial, float scale, float c, int first_row, int limit,
                                             ptx::Site site = ptx::Site::here()) {
  constexpr int kTileRows = Partial::kRows / kKeyWarps;
  constexpr int kColumns = Partial::kColumns - static_cast<int>(kPartialExtra);
  for (int pair = ptx::thread_index(); pair < kTileRows * kColumns / 2; pair += kThreads) {
    const int row = pair / (kColumns / 2);
    const int column = pair % (kColumns / 2) * 2;
    if (first_row + row >= limit)
      continue;
    const MergedPair merged = merge_pair<kKeyWarps>(partial, row, column, c, site);
    const float inverse = inverse_sum(merged.sum);
    store_pair<kVectorBytes>(o + row_offset(o_rows, first_row + row) + column, ptx::mul(merged.values[0], inverse),
                             ptx::mul(merged.values[1], inverse), site);
    if (lse != nullptr && column == 0)
      ptx::st_global_f32(lse + row_offset(lse_rows, first_row + row), log_sum_exp(merged.m, merged.sum, scale), site);
  }
}
template <int kThreads, int kKeyWarps, int kVectorBytes, class T, class Partial>
__device__ __forceinline__ void store_merged(T *o, long long row_stride, float *lse, const Partial &partial,
                                             float scale, float c, int first_row, int limit,
                                             ptx::Site site = ptx::Site::here()) {
  store_merged<kThreads, kKeyWarps, kVectorBytes>(o, row_stride, lse, 1LL, partial, scale, c, first_row, limit, site);
}

} // namespace fagen::device
