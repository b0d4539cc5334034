// fagen: the online softmax of a key tile without its maxima, where those of the tiles before will do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any m gives the same softmax, if no term exp2(c (s - m)) overflows and those that matter do not underflow: the
// maximum of some tiles does while later scores are not much larger. A row's sum, wanted anyway, bounds its terms. So
// terms and sums are computed first, and where a sum is too large the scores, which the terms have replaced, are
// multiplied again.
#pragma once

#include <fagen/device/ops/mma.h>
#include <fagen/device/ops/softmax.h>
#include <fagen/device/ptx/tma.h>

namespace fagen::device {

/// What a thread's terms of one row may add up to: a quarter of what f16 holds.
constexpr float kSettledSum = 16384.0f;

/// Whether a sum is too large, or no number: as of a row that has seen no key yet.
template <int kRows> __device__ __forceinline__ bool outgrows(const RowValues<kRows> &sums) {
  bool has_grown = false;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
    has_grown |= !(sums.value[slab][0] <= kSettledSum) || !(sums.value[slab][1] <= kSettledSum);
  return has_grown;
}

/// s = (rows [q_row, q_row + kRows) of q) k^T, as mma_abt; slice by slice, for few registers beside those of products
/// in flight.
template <int kRows, int kKeys, class QTile, class KTile>
__device__ __forceinline__ void scores_again(Accumulator<kRows, kKeys> &s, const QTile &q, int q_row, const KTile &k,
                                             ptx::Site site) {
  const int lane = ptx::recompute(ptx::thread_index()) % 32;
  const unsigned q_corner = q.address(ptx::recompute(q_row) + lane % 16, lane / 16 * 8);
  const unsigned k_corner = k.address(lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8);
  clear(s);
#pragma unroll 1
  for (int slice = 0; slice < QTile::kColumns / 16; ++slice) {
    unsigned q_slice[kRows / 16][4];
#pragma unroll
    for (int slab = 0; slab < kRows / 16; ++slab)
      ptx::ldmatrix_x4(q_slice[slab], slice_address<QTile>(q_corner, 16 * slab, 16 * slice), site);
    mma_abt_slice<Accumulator<kRows, kKeys>, KTile>(s, q_slice, k_corner, slice, site);
  }
}

/// s = exp2(c s - c m) are the terms of a key tile by the maxima m of the tiles before; adds each row's sum of them to
/// l. Where one of the warp's rows has outgrown its maximum the warp first does the step again, with scores (rows
/// [q_row, q_row + kRows) of q) k^T, which mask_again masks as they were: m becomes the maximum, alpha what o is still
/// to be multiplied by, and l and s follow. True where it did; else alpha is 1.
template <int kRows, int kKeys, class QTile, class KTile, class MaskAgain>
__device__ __forceinline__ bool settle_rows(Accumulator<kRows, kKeys> &s, RowValues<kRows> &alpha, RowValues<kRows> &l,
                                            RowValues<kRows> &m, const QTile &q, int q_row, const KTile &k, float c,
                                            MaskAgain mask_again, ptx::Site site = ptx::Site::here()) {
  RowValues<kRows> sums;
  fill(sums, 0.0f);
  row_sum(sums, s);
  fill(alpha, 1.0f);
  const bool is_redone = ptx::any(outgrows(sums), site);
  if (is_redone) {
    scores_again(s, q, q_row, k, site);
    ptx::fence_proxy_async(site); // bulk copies to q and k come after what was read
    mask_again();
    RowValues<kRows> m_new;
    row_max(m_new, s, m, site);
    rescale_rows<true>(alpha, l, m, m_new, c);
    exp2<true>(s, m, c);
    fill(sums, 0.0f);
    row_sum(sums, s);
  }
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      l.value[slab][half] = ptx::add(l.value[slab][half], sums.value[slab][half]);
  return is_redone;
}

/// Of a key tile that all rows see whole.
template <int kRows, int kKeys, class QTile, class KTile>
__device__ __forceinline__ bool settle_rows(Accumulator<kRows, kKeys> &s, RowValues<kRows> &alpha, RowValues<kRows> &l,
                                            RowValues<kRows> &m, const QTile &q, int q_row, const KTile &k, float c,
                                            ptx::Site site = ptx::Site::here()) {
  return settle_rows(s, alpha, l, m, q, q_row, k, c, [] {}, site);
}

} // namespace fagen::device
