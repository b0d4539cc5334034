// fagen: normalised results of parts of the keys, merged by a launch of its own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The warps of a row have some of its columns each. The parts are added in their order, so that the same inputs give
// the same bits (the split-KV combine of FlashDecoding). What lies there is read only: who writes parts writes all of
// them anew.
#pragma once

#include <fagen/device/ops/softmax.h>
#include <fagen/device/ops/store.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/tile/rows.h>

namespace fagen::device {

/// What all parts have of some rows, a value or a row of them for each: where those of part 0 lie, by a row map
/// (tile/rows.h), and how many f32 further on those of the next part.
template <class RowMap> struct RowsOfParts {
  const float *first;
  RowMap rows;
  long long stride;
};
template <class RowMap> RowsOfParts(const float *, RowMap, long long) -> RowsOfParts<RowMap>;

/// `row` of `count` parts: results of kColumns f32, and log-sum-exps in nats; -inf where a part has no keys, of which
/// the result is 0. Nothing from `limit` on.
template <int kColumns, int kWarps, int kVectorBytes, class ResultRows, class SumRows, class T, class ORows,
          class LseRows>
__device__ __forceinline__ void merge_parts(int count, const RowsOfParts<ResultRows> &results,
                                            const RowsOfParts<SumRows> &sums, T *o, const ORows &o_rows, float *lse,
                                            const LseRows &lse_rows, int row, int limit, int warp,
                                            ptx::Site site = ptx::Site::here()) {
  if (row >= limit)
    return;
  static_assert(kColumns % (128 * kWarps) == 0, "a lane has four columns of each 128");
  constexpr int kGroups = kColumns / (128 * kWarps);                // of 128 columns, that a warp has
  constexpr int kAtOnce = kGroups == 1 ? 16 : kGroups == 2 ? 8 : 4; // as many loads on their way as registers hold
  const int lane = ptx::lane_index(), first_column = 128 * kGroups * warp + 4 * lane;
  const float *const own_sums = sums.first + row_offset(sums.rows, row);
  const float *const own = results.first + row_offset(results.rows, row) + first_column;
  float m = ptx::negative_infinity(), total = 0.0f;
  for (int part = lane; part < count; part += 32) {
    m = ptx::max(m, ptx::element_of(own_sums, part * sums.stride, site));
  }
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2)
    m = ptx::max(m, ptx::shuffle_xor(m, mask, site));
  const float shift = finite_max<true>(m);
  float merged[kGroups][4] = {};
  for (int first = 0; first < count; first += kAtOnce) {
    float values[kAtOnce][kGroups][4] = {}, factors[kAtOnce] = {};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i >= count)
        continue;
      const float sum = ptx::element_of(own_sums, (first + i) * sums.stride, site);
#pragma unroll
      for (int group = 0; group < kGroups; ++group)
        ptx::ld_global_f32(values[i][group], own + (first + i) * results.stride + 128 * group, site);
      factors[i] = ptx::exp2(ptx::mul(sum - shift, kLog2E));
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      total = total + factors[i];
#pragma unroll
      for (int group = 0; group < kGroups; ++group)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          merged[group][j] = ptx::fma(factors[i], values[i][group][j], merged[group][j]);
    }
  }
  const float inverse = inverse_sum(total);
  T *const target = o + row_offset(o_rows, row) + first_column;
#pragma unroll
  for (int group = 0; group < kGroups; ++group)
#pragma unroll
    for (int j = 0; j < 4; j += 2)
      store_pair<kVectorBytes>(target + 128 * group + j, ptx::mul(merged[group][j], inverse),
                               ptx::mul(merged[group][j + 1], inverse), site);
  if (warp == 0 && lane == 0)
    ptx::st_global_f32(lse + row_offset(lse_rows, row), log_sum_exp(shift, total, 1.0f), site);
}

} // namespace fagen::device
