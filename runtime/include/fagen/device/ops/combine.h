// fagen: who merges the results of CTAs that share the keys of a tile of query rows, and how.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The parts (ops/split.h) are merged in the order of their numbers, whoever does it, so that the same inputs give the
// same bits, and zeros are left in their place (the split-KV combine of FlashDecoding). Where a warp has few rows, the
// one that comes last merges them: warps count themselves in the gap of part 0. Where it has many, that would keep one
// CTA busy while the others are done: a second launch does it, a warp for each row.
#pragma once

#include <fagen/device/ops/split.h>
#include <fagen/device/ptx/barrier.h>

namespace fagen::device {

/// What a lane has of a merged row: columns 4 (lane + 32 g) and the three after them.
template <int kColumns> struct CombinedRow {
  static constexpr int kGroups = (kColumns + 127) / 128;
  float values[kGroups][4] = {};
  float m = ptx::negative_infinity();
  float l = 0.0f;
};

/// A value of lane `from`.
__device__ __forceinline__ float value_of_lane(float value, int from, ptx::Site site) {
  return ptx::shuffle_xor(value, ptx::lane_index() ^ from, site);
}

/// Adds parts from `first` on, of which those from `count` on are none, and leaves zeros in their place. Each word is
/// read and cleared by one lane: m and l of part p by lane p. Loads come first, so that they are waited for together.
template <int kParts, int kColumns>
__device__ __forceinline__ void combine_parts(CombinedRow<kColumns> &row, float *first, long long part_stride,
                                              int count, float c, ptx::Site site) {
  static_assert(kParts <= 32, "a lane has m and l of one part");
  constexpr int kGroups = CombinedRow<kColumns>::kGroups;
  constexpr float kZeros[4] = {};
  const int lane = ptx::lane_index(), column = 4 * lane;
  float values[kParts][kGroups][4] = {}, of_part[2] = {ptx::negative_infinity(), 0.0f}; // m and l
  const bool has_part = lane < kParts && lane < count;
  if (has_part)
    ptx::ld_global_f32(of_part, first + lane * part_stride + kColumns, site);
#pragma unroll
  for (int part = 0; part < kParts; ++part)
#pragma unroll
    for (int group = 0; group < kGroups; ++group)
      if (part < count && column + 128 * group < kColumns)
        ptx::ld_global_f32(values[part][group], first + part * part_stride + column + 128 * group, site);
  if (has_part)
    ptx::st_global_f32(first + lane * part_stride + kColumns, kZeros, site); // and the gap
  float m = ptx::max(row.m, of_part[0]);
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2)
    m = ptx::max(m, ptx::shuffle_xor(m, mask, site));
  const float shift = finite_max<true>(m), factor = ptx::exp2(ptx::mul(of_part[0] - shift, c));
  const float before = ptx::exp2(ptx::mul(row.m - shift, c));
  row.m = m;
  row.l = ptx::mul(row.l, before);
#pragma unroll
  for (int group = 0; group < kGroups; ++group)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      row.values[group][i] = ptx::mul(row.values[group][i], before);
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const float of_all = value_of_lane(factor, part, site);
    row.l = ptx::fma(of_all, value_of_lane(of_part[1], part, site), row.l);
#pragma unroll
    for (int group = 0; group < kGroups; ++group)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        row.values[group][i] = ptx::fma(of_all, values[part][group][i], row.values[group][i]);
  }
#pragma unroll
  for (int part = 0; part < kParts; ++part)
#pragma unroll
    for (int group = 0; group < kGroups; ++group)
      if (part < count && column + 128 * group < kColumns)
        ptx::st_global_f32(first + part * part_stride + column + 128 * group, kZeros, site);
}

/// Where a row's parts lie, and where its result goes.
template <class T> struct SplitRow {
  float *first; ///< in part 0
  long long part_stride;
  T *o;
  float *lse; ///< or null
};

/// Merges the parts of a row, which is the warp's. One that saw no key of it has m -inf there: its factor is 0.
template <int kColumns, int kVectorBytes, RowUnit kUnit, class Params, class T>
__device__ __forceinline__ void combine_row(const Params &params, const SplitRow<T> &row, ptx::Site site) {
  constexpr int kParts = kColumns <= 128 ? 16 : 8; // at once: as many as registers hold
  CombinedRow<kColumns> merged;
  for (int part = 0; part < params.splits; part += kParts)
    combine_parts<kParts>(merged, row.first + part * row.part_stride, row.part_stride, params.splits - part,
                          exponent_factor<kUnit>(params), site);
  const float inverse = inverse_sum(merged.l);
#pragma unroll
  for (int group = 0; group < CombinedRow<kColumns>::kGroups; ++group) {
    const int column = 4 * ptx::lane_index() + 128 * group;
    if (column >= kColumns)
      continue;
#pragma unroll
    for (int i = 0; i < 4; i += 2)
      store_pair<kVectorBytes>(row.o + column + i, ptx::mul(merged.values[group][i], inverse),
                               ptx::mul(merged.values[group][i + 1], inverse), site);
  }
  if (row.lse != nullptr && ptx::lane_index() == 0)
    ptx::st_global_f32(row.lse, log_sum_exp(merged.m, merged.l, lse_factor<kUnit>(params)), site);
}

/// Of the second launch: merges the parts of rows, one a warp: the CTA's warps have neighbouring ones of all heads' and
/// batches' rows.
template <class T, int kColumns, int kVectorBytes, bool kHasLse, RowUnit kUnit = RowUnit::kScores>
__device__ __forceinline__ void combine_splits(const AttentionParams &params, long long row,
                                               ptx::Site site = ptx::Site::here()) {
  const long long rows = static_cast<long long>(params.batch) * params.heads * params.seq_q;
  if (row >= rows)
    return;
  const int of_head = static_cast<int>(row % params.seq_q), unit = static_cast<int>(row / params.seq_q);
  const int head = unit % params.heads, batch = unit / params.heads;
  float *const lse = kHasLse ? head_lse(params, batch, head) : nullptr;
  const SplitRow<T> place = {static_cast<float *>(params.workspace) + row * split_columns<kColumns>(),
                             rows * split_columns<kColumns>(),
                             head_rows<T>(params.o, params.o_stride, batch, head) + of_head * params.o_stride[2],
                             lse == nullptr ? nullptr : lse + of_head};
  combine_row<kColumns, kVectorBytes, kUnit>(params, place, site);
}

/// The warp has stored its rows of one part, and counts itself. True for the warp of the last split to come: it sees
/// what those of all others stored. Between the fences and the count nothing else may stand: what a warp's lanes stored
/// is handed to the lane that counts by the warp's barrier, and by its fence to whoever reads its count. The last one
/// leaves 0 in the counter.
template <class Params>
__device__ __forceinline__ bool is_last_split(const Params &params, unsigned *counter, ptx::Site site) {
  ptx::warp_barrier(site);
  bool is_last = false;
  if (ptx::lane_index() == 0) {
    ptx::fence_device(site);
    is_last = ptx::atomic_inc(counter, params.splits - 1, site) + 1 == static_cast<unsigned>(params.splits);
    ptx::fence_device(site);
  }
  is_last = ptx::any(is_last, site);
  ptx::warp_barrier(site);
  return is_last;
}

/// The only part of a row, merged from the key warps' rows; as combine_row would, of which the factors are 1.
template <int kKeyWarps, int kVectorBytes, RowUnit kUnit, class Params, class T, class Partial>
__device__ __forceinline__ void combine_alone(const Params &params, const Partial &partial, int tile_row, T *o,
                                              float *lse, ptx::Site site) {
  constexpr int kColumns = Partial::kColumns - static_cast<int>(kPartialExtra);
  for (int column = 2 * ptx::lane_index(); column < kColumns; column += 64) {
    const MergedPair merged = merge_pair<kKeyWarps>(partial, tile_row, column, exponent_factor<kUnit>(params), site);
    const float inverse = inverse_sum(merged.sum);
    store_pair<kVectorBytes>(o + column, ptx::mul(merged.values[0], inverse), ptx::mul(merged.values[1], inverse),
                             site);
    if (lse != nullptr && column == 0)
      ptx::st_global_f32(lse, log_sum_exp(merged.m, merged.sum, lse_factor<kUnit>(params)), site);
  }
}

/// After store_merged_split: where all splits of the warp's rows are stored, merges them. `parts`, `o` and `lse` are
/// row 0, of part 0, from which the row maps (tile/rows.h) lead to the others.
template <int kWarps, int kKeyWarps, int kVectorBytes, RowUnit kUnit = RowUnit::kScores, class Params, class Partial,
          class RowMap, class T, class ORowMap, class LseRowMap>
__device__ __forceinline__ void combine_last(const Params &params, const Partial &partial, float *parts,
                                             const RowMap &rows, T *o, const ORowMap &o_rows, float *lse,
                                             const LseRowMap &lse_rows, int first_row, int limit,
                                             ptx::Site site = ptx::Site::here()) {
  constexpr int kTileRows = Partial::kRows / kKeyWarps;
  constexpr int kColumns = Partial::kColumns - static_cast<int>(kPartialExtra);
  constexpr int kCounter = kColumns + 2; // after m and l
  const int first = first_row + ptx::warp_index();
  const int end = first_row + kTileRows < limit ? first_row + kTileRows : limit;
  if (first >= end)
    return;
  unsigned *const counter = reinterpret_cast<unsigned *>(parts + row_offset(rows, first) + kCounter);
  if (params.splits > 1 && !is_last_split(params, counter, site))
    return;
  const long long stride = part_stride<kColumns>(params);
  for (int row = first; row < end; row += kWarps) {
    T *const o_row = o + row_offset(o_rows, row);
    float *const lse_row = lse == nullptr ? nullptr : lse + row_offset(lse_rows, row);
    if (params.splits == 1)
      combine_alone<kKeyWarps, kVectorBytes, kUnit>(params, partial, row - first_row, o_row, lse_row, site);
    else
      combine_row<kColumns, kVectorBytes, kUnit>(
          params, SplitRow<T>{parts + row_offset(rows, row), stride, o_row, lse_row}, site);
  }
}

/// The same where a row of LSE is next to the row before.
template <int kWarps, int kKeyWarps, int kVectorBytes, RowUnit kUnit = RowUnit::kScores, class Partial, class RowMap,
          class T, class ORowMap>
__device__ __forceinline__ void combine_last(const AttentionParams &params, const Partial &partial, float *parts,
                                             const RowMap &rows, T *o, const ORowMap &o_rows, float *lse, int first_row,
                                             int limit, ptx::Site site = ptx::Site::here()) {
  combine_last<kWarps, kKeyWarps, kVectorBytes, kUnit>(params, partial, parts, rows, o, o_rows, lse, 1LL, first_row,
                                                       limit, site);
}

} // namespace fagen::device
