// fagen: any function of elements, for kernels whose scores lie in shared memory (ops/lane_softmax.h).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ops/lane_softmax.h>
#include <fagen/device/ops/map.h>

namespace fagen::device {

template <int kRows> __device__ __forceinline__ float lane_element(const LaneRows<kRows> &x, int r) {
  return x.value[r];
}

/// Element i of pair `pair` of row r, or the row's value.
template <int kRows, int kColumns>
__device__ __forceinline__ float lane_element(const LaneColumns<kRows, kColumns> &x, int r, int pair, int i) {
  return x.value[r][pair][i];
}
template <int kRows>
__device__ __forceinline__ float lane_element(const LaneRows<kRows> &x, int r, int /*pair*/, int /*i*/) {
  return x.value[r];
}

/// As ops/map.h's: of scores each lane its own. `row` is the warp's first row in the tile.
template <int kRows, class Scores, class F, class... Sources>
__device__ __forceinline__ void map(const Scores &s, int row, int first_row, int first_key, F f,
                                    const Sources &...sources) {
  const ptx::Site site = ptx::Site::here();
  for_own_scores<kRows, Scores>([&](int r, int key) {
    const unsigned address = s.address(row + r, key);
    const float value = load_as_float<typename Scores::Element>(address, site);
    store_rounded<typename Scores::Element>(
        address, f(value, lane_element(sources, r)..., first_row + r, first_key + key), site);
  });
}

template <int kRows, class F, class... Sources>
__device__ __forceinline__ void map(LaneRows<kRows> &dst, int first_row, int first_key, F f,
                                    const Sources &...sources) {
#pragma unroll
  for (int r = 0; r < kRows; ++r)
    dst.value[r] = f(dst.value[r], lane_element(sources, r)..., first_row + r, first_key);
}

template <int kRows, int kColumns, class F, class... Sources>
__device__ __forceinline__ void map(LaneColumns<kRows, kColumns> &dst, int first_row, int first_key, F f,
                                    const Sources &...sources) {
#pragma unroll
  for (int r = 0; r < kRows; ++r)
#pragma unroll
    for (int pair = 0; pair < LaneColumns<kRows, kColumns>::kPairs; ++pair)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        float &value = dst.value[r][pair][i];
        value = f(value, lane_element(sources, r, pair, i)..., first_row + r,
                  first_key + 64 * pair + 2 * ptx::lane_index() + i);
      }
}

} // namespace fagen::device
