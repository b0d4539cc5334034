// fagen: the online softmax of a key tile without its maxima, where those of the tiles before will do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any m gives the same softmax, if no term exp2(c (s - m)) overflows and those that matter do not underflow: the
// maximum of some tiles does while later scores are not much larger. A row's sum, wanted anyway, bounds its terms. So
// terms and sums are computed first. Where a sum is too large for what follows, but a number, terms and sums come down
// by a common factor, and m rises by its logarithm. Where it is none the scores, which the terms have replaced, are
// multiplied again.
#pragma once

#include <fagen/device/ops/mma.h>
#include <fagen/device/ops/softmax.h>
#include <fagen/device/ptx/tma.h>
#include <fagen/device/settling.h>

namespace fagen::device {

// Of operands; other types have no such numbers.
template <class T> inline constexpr float kSettledSum = T::has_no_bound;
template <> inline constexpr float kSettledSum<f16> = kSettledSumF16;
template <> inline constexpr float kSettledSum<bf16> = kSettledSumBf16;
template <> inline constexpr float kSettledSum<e4m3> = kSettledSumE4M3;

template <class T> inline constexpr float kLoweredBits = T::has_no_bound;
template <> inline constexpr float kLoweredBits<f16> = kLoweredBitsF16;
template <> inline constexpr float kLoweredBits<bf16> = kLoweredBitsBf16;
template <> inline constexpr float kLoweredBits<e4m3> = kLoweredBitsE4M3;

/// Whether a thread has a sum that is larger than that, or no number: as of a row that has seen no key yet.
template <int kRows> __device__ __forceinline__ bool outgrows(const RowValues<kRows> &sums, float bound) {
  bool has_grown = false;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
    has_grown |= !(sums.value[slab][0] <= bound) || !(sums.value[slab][1] <= bound);
  return has_grown;
}

/// Rows that have no maximum yet take that of their scores s, while these are there: rows that saw no key of the tiles
/// before. By m = -inf they would have terms that are no numbers.
template <int kRows, int kKeys>
__device__ __forceinline__ void begin_rows(RowValues<kRows> &m, const Accumulator<kRows, kKeys> &s,
                                           ptx::Site site = ptx::Site::here()) {
  bool has_new = false;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
    has_new |= m.value[slab][0] == ptx::negative_infinity() || m.value[slab][1] == ptx::negative_infinity();
  if (!ptx::any(has_new, site))
    return;
  RowValues<kRows> m_new;
  row_max(m_new, s, m, site);
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (m.value[slab][half] == ptx::negative_infinity())
        m.value[slab][half] = m_new.value[slab][half];
}

/// Terms s, their sums, l, and what o is still to be multiplied by, of rows whose terms add up to more than
/// 2^kLoweredBits, by m that is larger by as much. The factor is that of the m which comes out, however it was rounded.
template <class T, int kRows, int kKeys>
__device__ __forceinline__ void lower_rows(Accumulator<kRows, kKeys> &s, RowValues<kRows> &sums,
                                           RowValues<kRows> &alpha, RowValues<kRows> &l, RowValues<kRows> &m, float c,
                                           ptx::Site site) {
  c = ptx::bits_float(ptx::recompute(ptx::float_bits(c))); // the other steps have it in a uniform register
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = sums.value[slab][half];
      sum = ptx::add(sum, ptx::shuffle_xor(sum, 1, site));
      sum = ptx::add(sum, ptx::shuffle_xor(sum, 2, site));
      const float growth = ptx::max(ptx::log2(sum) - kLoweredBits<T>, 0.0f);
      const float before = m.value[slab][half];
      const float after = before + ptx::exp2(ptx::log2(growth) - ptx::log2(c)); // growth / c
      const float factor = ptx::exp2(ptx::mul(before - finite_max<true>(after), c));
      m.value[slab][half] = after;
      alpha.value[slab][half] = ptx::mul(alpha.value[slab][half], factor);
      l.value[slab][half] = ptx::mul(l.value[slab][half], factor);
      sums.value[slab][half] = ptx::mul(sums.value[slab][half], factor);
#pragma unroll
      for (int tile = 0; tile < kKeys / 8; ++tile)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i)
          s.value[slab][tile][i] = ptx::mul(s.value[slab][tile][i], factor);
    }
}

/// s = (rows [q_row, q_row + kRows) of q) k^T, as mma_abt; slice by slice, for few registers next to those of products
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

/// The sums of a thread's terms s, row by row, and whether one of the warp's rows has outgrown its m by them.
template <class T, int kRows, int kKeys>
__device__ __forceinline__ bool terms_outgrow(RowValues<kRows> &sums, const Accumulator<kRows, kKeys> &s,
                                              ptx::Site site = ptx::Site::here()) {
  fill(sums, 0.0f);
  row_sum(sums, s);
  return ptx::any(outgrows(sums, kSettledSum<T>), site);
}

/// Where one has, the warp's terms and sums come down, as lower_rows has it. Where the sums do not say by how much, the
/// warp first takes scores (rows [q_row, q_row + kRows) of q) k^T again, which mask_again masks as they were, their
/// maxima, and terms by these. alpha, 1 before, is what o is still to be multiplied by.
template <Exponent kHow = Exponent::kFused, int kRows, int kKeys, class QTile, class KTile, class MaskAgain>
__device__ __forceinline__ void settle_outgrown(Accumulator<kRows, kKeys> &s, RowValues<kRows> &sums,
                                                RowValues<kRows> &alpha, RowValues<kRows> &l, RowValues<kRows> &m,
                                                const QTile &q, int q_row, const KTile &k, float c,
                                                MaskAgain mask_again, ptx::Site site = ptx::Site::here()) {
  if (ptx::any(outgrows(sums, kFiniteSum), site)) {
    scores_again(s, q, q_row, k, site);
    ptx::fence_proxy_async(site); // bulk copies to q and k come after what was read
    mask_again();
    RowValues<kRows> m_new;
    row_max(m_new, s, m, site);
    rescale_rows<true>(alpha, l, m, m_new, c);
    exp2<true, 0, kHow>(s, m, c);
    fill(sums, 0.0f);
    row_sum(sums, s);
  }
  lower_rows<typename QTile::Element>(s, sums, alpha, l, m, c, site);
}

template <int kRows> __device__ __forceinline__ void add_sums(RowValues<kRows> &l, const RowValues<kRows> &sums) {
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      l.value[slab][half] = ptx::add(l.value[slab][half], sums.value[slab][half]);
}

/// s = exp2(c (s - m)) are the terms of a key tile by the maxima m of the tiles before; adds each row's sum of them to
/// l. True where one of the warp's rows has outgrown its m: then settle_outgrown comes first, and alpha is what o is
/// still to be multiplied by; else it is 1.
template <Exponent kHow = Exponent::kFused, int kRows, int kKeys, class QTile, class KTile, class MaskAgain>
__device__ __forceinline__ bool settle_rows(Accumulator<kRows, kKeys> &s, RowValues<kRows> &alpha, RowValues<kRows> &l,
                                            RowValues<kRows> &m, const QTile &q, int q_row, const KTile &k, float c,
                                            MaskAgain mask_again, ptx::Site site = ptx::Site::here()) {
  RowValues<kRows> sums;
  const bool is_redone = terms_outgrow<typename QTile::Element>(sums, s, site);
  fill(alpha, 1.0f);
  if (is_redone)
    settle_outgrown<kHow>(s, sums, alpha, l, m, q, q_row, k, c, mask_again, site);
  add_sums(l, sums);
  return is_redone;
}

/// Of a key tile that all rows see whole.
template <Exponent kHow = Exponent::kFused, int kRows, int kKeys, class QTile, class KTile>
__device__ __forceinline__ bool settle_rows(Accumulator<kRows, kKeys> &s, RowValues<kRows> &alpha, RowValues<kRows> &l,
                                            RowValues<kRows> &m, const QTile &q, int q_row, const KTile &k, float c,
                                            ptx::Site site = ptx::Site::here()) {
  return settle_rows<kHow>(s, alpha, l, m, q, q_row, k, c, [] {}, site);
}

} // namespace fagen::device
