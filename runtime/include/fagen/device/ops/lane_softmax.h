// fagen: the online softmax on scores in shared memory, one warp for a run of query rows.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of each row of scores a lane owns keys lane, lane + 32, ...; of each row of O it owns the columns LaneColumns names.
// `row` is the warp's first row in the tile. Scores are f32, or f16 where products accumulate in f16.
#pragma once

#include <fagen/device/ops/halves.h>
#include <fagen/device/ops/store.h>
#include <fagen/device/tile/shared_tile.h>

namespace fagen::device {

/// One element of a tile of T as f32, and back, rounded once.
template <class T> __device__ __forceinline__ float load_as_float(unsigned address, ptx::Site site) {
  if constexpr (sizeof(T) == sizeof(float))
    return ptx::ld_shared_f32(address, site);
  else
    return ptx::to_float(T{ptx::ld_shared_u16(address, site)});
}
template <class T>
__device__ __forceinline__ void store_rounded(unsigned address, float value, ptx::Site site, bool active = true) {
  if constexpr (sizeof(T) == sizeof(float))
    ptx::st_shared_f32(address, value, site, active);
  else
    ptx::st_shared_u16(address, ptx::round_to<T>(value).bits, site, active);
}

/// Calls visit(r, key) for each of the lane's scores in the warp's rows r.
template <int kRows, class Scores, class Visit> __device__ __forceinline__ void for_own_scores(Visit visit) {
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int key = 0; key < Scores::kColumns; key += 32)
      visit(r, key + ptx::lane_index());
}

template <int kRows, int kColumns> __device__ __forceinline__ void clear(LaneColumns<kRows, kColumns> &o) {
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int pair = 0; pair < LaneColumns<kRows, kColumns>::kPairs; ++pair)
      o.value[r][pair][0] = o.value[r][pair][1] = 0.0f;
}

template <int kRows> __device__ __forceinline__ void fill(LaneRows<kRows> &rows, float value) {
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    rows.value[r] = value;
}

/// -inf where visible(row, key) is false; (first_row, first_key) is the warp's corner in the tensor.
template <int kRows, class Scores, class Visible>
__device__ __forceinline__ void mask(const Scores &s, int row, int first_row, int first_key, Visible visible,
                                     ptx::Site site = ptx::Site::here()) {
  for_own_scores<kRows, Scores>([&](int r, int key) {
    const bool hidden = !visible(first_row + r, first_key + key);
    store_rounded<typename Scores::Element>(s.address(row + r, key), ptx::negative_infinity(), site, hidden);
  });
}

/// The lane's own maximum (or sum) of each row.
template <int kRows, class Scores>
__device__ __forceinline__ void lane_max(LaneRows<kRows> &largest, const Scores &s, int row, ptx::Site site) {
  fill(largest, ptx::negative_infinity());
  for_own_scores<kRows, Scores>([&](int r, int key) {
    largest.value[r] =
        ptx::max(largest.value[r], load_as_float<typename Scores::Element>(s.address(row + r, key), site));
  });
}

/// m_new = max(m, maximum of each row), across the lanes by shuffles.
template <int kRows, class Scores>
__device__ __forceinline__ void row_max(LaneRows<kRows> &m_new, const Scores &s, int row, const LaneRows<kRows> &m,
                                        ptx::Site site = ptx::Site::here()) {
  lane_max(m_new, s, row, site);
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
      m_new.value[r] = ptx::max(m_new.value[r], ptx::shuffle_xor(m_new.value[r], distance, site));
    m_new.value[r] = ptx::max(m_new.value[r], m.value[r]);
  }
}

/// reduce = shared: each lane leaves its maximum of each row in its column of the scratch tile (kTileRows x 32 f32).
template <int kRows, class Scratch, class Scores>
__device__ __forceinline__ void reduce_partial_max(const Scratch &scratch, const Scores &s, int row,
                                                   ptx::Site site = ptx::Site::here()) {
  LaneRows<kRows> largest;
  lane_max(largest, s, row, site);
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    ptx::st_shared_f32(scratch.address(row + r, ptx::lane_index()), largest.value[r], site);
}

/// ... and every lane takes m_new = max(m, maximum of the row's 32).
template <int kRows, class Scratch>
__device__ __forceinline__ void reduce_total_max(LaneRows<kRows> &m_new, const Scratch &scratch, int row,
                                                 const LaneRows<kRows> &m, ptx::Site site = ptx::Site::here()) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    m_new.value[r] = m.value[r];
#pragma unroll 4
    for (int lane = 0; lane < 32; ++lane)
      m_new.value[r] = ptx::max(m_new.value[r], ptx::ld_shared_f32(scratch.address(row + r, lane), site));
  }
}

/// The same for the lanes' sums l.
template <int kRows, class Scratch>
__device__ __forceinline__ void reduce_partial_sum(const Scratch &scratch, const LaneRows<kRows> &l, int row,
                                                   ptx::Site site = ptx::Site::here()) {
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    ptx::st_shared_f32(scratch.address(row + r, ptx::lane_index()), l.value[r], site);
}
template <int kRows, class Scratch>
__device__ __forceinline__ void reduce_total_sum(LaneRows<kRows> &l, const Scratch &scratch, int row,
                                                 ptx::Site site = ptx::Site::here()) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    l.value[r] = 0.0f;
#pragma unroll 4
    for (int lane = 0; lane < 32; ++lane)
      l.value[r] = ptx::add(l.value[r], ptx::ld_shared_f32(scratch.address(row + r, lane), site));
  }
}

/// o and l from maximum m to m_new: both times exp2(c (m - m_new)); then m = m_new.
template <bool kGuard, int kRows, int kColumns>
__device__ __forceinline__ void rescale(LaneColumns<kRows, kColumns> &o, LaneRows<kRows> &l, LaneRows<kRows> &m,
                                        const LaneRows<kRows> &m_new, float c) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float factor = ptx::exp2(ptx::mul(m.value[r] - finite_max<kGuard>(m_new.value[r]), c));
    m.value[r] = m_new.value[r];
    l.value[r] = ptx::mul(l.value[r], factor);
#pragma unroll
    for (int pair = 0; pair < LaneColumns<kRows, kColumns>::kPairs; ++pair)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        o.value[r][pair][i] = ptx::mul(o.value[r][pair][i], factor);
  }
}

/// As rescale, but only when a row has grown by more than a factor of 2^kLazyBits (ops/softmax.h).
template <bool kGuard, int kRows, int kColumns>
__device__ __forceinline__ void rescale_lazily(LaneColumns<kRows, kColumns> &o, LaneRows<kRows> &l, LaneRows<kRows> &m,
                                               const LaneRows<kRows> &m_new, float c) {
  bool has_grown = false; // the same in all lanes, as the maxima are
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    has_grown |= ptx::mul(m_new.value[r] - m.value[r], c) > kLazyBits;
  if (has_grown)
    rescale<kGuard>(o, l, m, m_new, c);
}

/// s = exp2(c (s - m)), in place; each kEvery-th of a lane's by polynomial, with 0 none.
template <bool kGuard, int kEvery = 0, Exponent kHow = Exponent::kFused, int kRows, class Scores>
__device__ __forceinline__ void exp2(const Scores &s, int row, const LaneRows<kRows> &m, float c,
                                     ptx::Site site = ptx::Site::here()) {
  TermExp2<kEvery> power;
  for_own_scores<kRows, Scores>([&](int r, int key) {
    const unsigned address = s.address(row + r, key);
    const RowExponent<kHow> exponent(finite_max<kGuard>(m.value[r]), c);
    const float score = load_as_float<typename Scores::Element>(address, site);
    store_rounded<typename Scores::Element>(address, power(exponent(score)), site);
  });
}

/// l += the lane's part of each row's sum.
template <int kRows, class Scores>
__device__ __forceinline__ void row_sum(LaneRows<kRows> &l, const Scores &s, int row,
                                        ptx::Site site = ptx::Site::here()) {
  for_own_scores<kRows, Scores>([&](int r, int key) {
    l.value[r] = ptx::add(l.value[r], load_as_float<typename Scores::Element>(s.address(row + r, key), site));
  });
}

/// l becomes the whole row's sum, across the lanes by shuffles.
template <int kRows> __device__ __forceinline__ void total(LaneRows<kRows> &l, ptx::Site site = ptx::Site::here()) {
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
      l.value[r] = ptx::add(l.value[r], ptx::shuffle_xor(l.value[r], distance, site));
}

/// o /= l, l being the whole row's sum.
template <int kRows, int kColumns>
__device__ __forceinline__ void normalize(LaneColumns<kRows, kColumns> &o, const LaneRows<kRows> &l) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float inverse = inverse_sum(l.value[r]);
#pragma unroll
    for (int pair = 0; pair < LaneColumns<kRows, kColumns>::kPairs; ++pair)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        o.value[r][pair][i] = ptx::mul(o.value[r][pair][i], inverse);
  }
}

/// Rows of o; `target` is row 0, from which `rows` (tile/rows.h) leads to the others; the warp's first row is
/// `first_row`.
template <int kVectorBytes, class T, class RowMap, int kRows, int kColumns>
__device__ __forceinline__ void store_rows(T *target, const RowMap &rows, const LaneColumns<kRows, kColumns> &o,
                                           int first_row, int limit, ptx::Site site = ptx::Site::here()) {
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int pair = 0; pair < LaneColumns<kRows, kColumns>::kPairs; ++pair) {
      const int column = 64 * pair + 2 * ptx::lane_index();
      if (first_row + r < limit && column < kColumns)
        store_pair<kVectorBytes>(target + row_offset(rows, first_row + r) + column, o.value[r][pair][0],
                                 o.value[r][pair][1], site);
    }
}

/// Log-sum-exp of each row; nothing when the caller gave no pointer. `target` is row 0.
template <class RowMap, int kRows>
__device__ __forceinline__ void store_lse(float *target, const RowMap &rows, const LaneRows<kRows> &m,
                                          const LaneRows<kRows> &l, float scale, int first_row, int limit,
                                          ptx::Site site = ptx::Site::here()) {
  if (target == nullptr || ptx::lane_index() != 0)
    return;
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    if (first_row + r < limit)
      ptx::st_global_f32(target + row_offset(rows, first_row + r), log_sum_exp(m.value[r], l.value[r], scale), site);
}
template <int kRows>
__device__ __forceinline__ void store_lse(float *target, const LaneRows<kRows> &m, const LaneRows<kRows> &l,
                                          float scale, int first_row, int limit, ptx::Site site = ptx::Site::here()) {
  store_lse(target, 1LL, m, l, scale, first_row, limit, site);
}

} // namespace fagen::device
