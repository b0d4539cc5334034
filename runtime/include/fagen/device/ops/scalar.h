// fagen: products of the scalar kernels: fused multiply-adds, scores in shared memory.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The lanes' shares of scores and of O are those of lane_softmax.h; `row` is the warp's first row in the tile.
#pragma once

#include <fagen/device/ops/lane_softmax.h>

namespace fagen::device {

/// Rows [row, row + kRows) of s = rows of q * k^T.
template <int kRows, class Scores, class Q, class K>
__device__ __forceinline__ void scores_abt(const Scores &s, const Q &q, const K &k, int row,
                                           ptx::Site site = ptx::Site::here()) {
  using T = typename Q::Element;
  constexpr int kOwnKeys = Scores::kColumns / 32;
  float sum[kRows][kOwnKeys] = {};
#pragma unroll 1
  for (int column = 0; column < Q::kColumns; column += 8) {
    unsigned k_words[kOwnKeys][4];
#pragma unroll
    for (int i = 0; i < kOwnKeys; ++i)
      ptx::ld_shared(k_words[i], k.address(32 * i + ptx::lane_index(), column), site);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      unsigned q_words[4];
      ptx::ld_shared(q_words, q.address(row + r, column), site);
#pragma unroll
      for (int i = 0; i < kOwnKeys; ++i)
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          sum[r][i] = ptx::fma(low_half<T>(q_words[w]), low_half<T>(k_words[i][w]), sum[r][i]);
          sum[r][i] = ptx::fma(high_half<T>(q_words[w]), high_half<T>(k_words[i][w]), sum[r][i]);
        }
    }
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int i = 0; i < kOwnKeys; ++i)
      ptx::st_shared_f32(s.address(row + r, 32 * i + ptx::lane_index()), sum[r][i], site);
}

/// o += rows [row, row + kRows) of p * v.
template <int kRows, int kColumns, class Scores, class V>
__device__ __forceinline__ void output_ab(LaneColumns<kRows, kColumns> &o, const Scores &p, const V &v, int row,
                                          ptx::Site site = ptx::Site::here()) {
  using T = typename V::Element;
  const int lane = ptx::lane_index();
#pragma unroll 1
  for (int key = 0; key < Scores::kColumns; ++key)
#pragma unroll
    for (int pair = 0; pair < LaneColumns<kRows, kColumns>::kPairs; ++pair) {
      const int column = 64 * pair + 2 * lane;
      if (column >= kColumns)
        continue;
      unsigned word[1];
      ptx::ld_shared(word, v.address(key, column), site);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const float weight = ptx::ld_shared_f32(p.address(row + r, key), site);
        o.value[r][pair][0] = ptx::fma(weight, low_half<T>(word[0]), o.value[r][pair][0]);
        o.value[r][pair][1] = ptx::fma(weight, high_half<T>(word[0]), o.value[r][pair][1]);
      }
    }
}

} // namespace fagen::device
