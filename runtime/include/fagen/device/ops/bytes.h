// fagen: products of elements of one byte, and what makes and stages such elements.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where ops/wgmma.h, ops/softmax.h and ops/store.h have functions of 16-bit elements, these are of e4m3.
#pragma once

#include <fagen/device/ops/store.h>
#include <fagen/device/ops/wgmma.h>
#include <fagen/device/ptx/bytes.h>
#include <fagen/device/ptx/mma.h>
#include <fagen/device/ptx/wgmma_bytes.h>

namespace fagen::device {

/// One instruction; both operands run along what is summed over.
template <ptx::Major kA, ptx::Major kB, class D>
__device__ __forceinline__ void wgmma_slice(e4m3, D &d, ptx::MatrixDescriptor a, ptx::MatrixDescriptor b,
                                            bool accumulate, ptx::Site site) {
  static_assert(kA == ptx::Major::kK && kB == ptx::Major::kK, "products of bytes take no transposed operand");
  ptx::wgmma_f32_e4m3(d, a, b, accumulate, site);
}
template <ptx::Major kB, class D>
__device__ __forceinline__ void wgmma_slice(e4m3, D &d, const unsigned (&a)[4], ptx::MatrixDescriptor b,
                                            bool accumulate, ptx::Site site) {
  static_assert(kB == ptx::Major::kK, "products of bytes take no transposed operand");
  ptx::wgmma_f32_e4m3(d, a, b, accumulate, site);
}

/// A row's elements 4t to 4t + 3 of 16, for lane t of each quad, from those that an accumulator's lanes have: 2t and
/// 2t + 1 of the first eight in the low half of `own`, of the others in the high one. Neighbours complete each other's
/// four; then the two lanes in the middle of the quad exchange theirs.
__device__ __forceinline__ unsigned four_of_quad(unsigned own, ptx::Site site) {
  const int lane = ptx::lane_index() % 4;
  const bool is_odd = lane & 1, is_middle = lane == 1 || lane == 2;
  const unsigned other = ptx::shuffle_xor(own, 1, site), even = is_odd ? other : own, odd = is_odd ? own : other;
  const unsigned low = (even & 0xffffu) | odd << 16, high = even >> 16 | (odd & 0xffff0000u);
  const unsigned given = ptx::shuffle_xor(lane == 1 ? high : low, 3, site);
  return is_middle ? given : lane == 0 ? low : high;
}

/// Four elements of a row, rounded once, beyond 448 to that: with kPaired those that the lane has, else columns 4t to
/// 4t + 3.
template <bool kPaired>
__device__ __forceinline__ unsigned four_bytes(const float (&first)[4], const float (&second)[4], int pair,
                                               ptx::Site site) {
  const unsigned own = ptx::round_bytes<e4m3>(first[pair], first[pair + 1]) |
                       static_cast<unsigned>(ptx::round_bytes<e4m3>(second[pair], second[pair + 1])) << 16;
  return kPaired ? own : four_of_quad(own, site);
}

/// The accumulator's elements; columns that it does not have are 0.
template <bool kPaired, int kRows, int kColumns, int kGiven>
__device__ __forceinline__ void convert_bytes(LeftOperand<e4m3, kRows, kColumns> &p,
                                              const Accumulator<kRows, kGiven> &s, ptx::Site site) {
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int slice = 0; slice < kColumns / 32; ++slice)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int tile = 4 * slice + i / 2 * 2, pair = i % 2 * 2;
        p.value[slab][slice][i] =
            tile >= kGiven / 8 ? 0 : four_bytes<kPaired>(s.value[slab][tile], s.value[slab][tile + 1], pair, site);
      }
}

template <int kRows, int kColumns, int kGiven>
__device__ __forceinline__ void convert(LeftOperand<e4m3, kRows, kColumns> &p, const Accumulator<kRows, kGiven> &s,
                                        ptx::Site site = ptx::Site::here()) {
  convert_bytes<false>(p, s, site);
}
/// Columns of each 16 in the order 0, 1, 8, 9, 2, 3, 10, 11, ...: no lane needs another's.
template <int kRows, int kColumns, int kGiven>
__device__ __forceinline__ void convert_paired(LeftOperand<e4m3, kRows, kColumns> &p,
                                               const Accumulator<kRows, kGiven> &s,
                                               ptx::Site site = ptx::Site::here()) {
  convert_bytes<true>(p, s, site);
}

/// As stage_rows of ops/store.h, by words.
template <bool kPaired, int kFirst, int kTileRows, int kTileColumns, Swizzle kSwizzle, int kRows, int kColumns>
__device__ __forceinline__ void stage_bytes(const SharedTile<e4m3, kTileRows, kTileColumns, kSwizzle> &tile,
                                            const Accumulator<kRows, kColumns> &o, int first_row, ptx::Site site) {
  constexpr int kStaged = kColumns - kFirst < kTileColumns ? kColumns - kFirst : kTileColumns;
  static_assert(kFirst % 8 == 0 && kStaged % 16 == 0, "pairs of the accumulator's tiles");
  const int lane = ptx::recompute(ptx::thread_index()) % 32; // not kept across the loop
#pragma unroll
  for (int row = 0; row < kRows; row += 8)
#pragma unroll
    for (int column = 0; column < kStaged; column += 16) {
      const int of_tile = (kFirst + column) / 8, pair = row % 16 / 8 * 2;
      const unsigned word[1] = {
          four_bytes<kPaired>(o.value[row / 16][of_tile], o.value[row / 16][of_tile + 1], pair, site)};
      ptx::st_shared(tile.address(first_row + row + lane / 4, column + lane % 4 * 4), word, site);
    }
}

template <int kFirst = 0, int kTileRows, int kTileColumns, Swizzle kSwizzle, int kRows, int kColumns>
__device__ __forceinline__ void stage_rows(const SharedTile<e4m3, kTileRows, kTileColumns, kSwizzle> &tile,
                                           const Accumulator<kRows, kColumns> &o, int first_row,
                                           ptx::Site site = ptx::Site::here()) {
  stage_bytes<false, kFirst>(tile, o, first_row, site);
}
/// Columns of each 16 in the order of convert_paired.
template <int kFirst = 0, int kTileRows, int kTileColumns, Swizzle kSwizzle, int kRows, int kColumns>
__device__ __forceinline__ void stage_paired(const SharedTile<e4m3, kTileRows, kTileColumns, kSwizzle> &tile,
                                             const Accumulator<kRows, kColumns> &o, int first_row,
                                             ptx::Site site = ptx::Site::here()) {
  stage_bytes<true, kFirst>(tile, o, first_row, site);
}

/// As that of ops/settle.h, by mma.sync of f16, to which bytes widen exactly. Of each 16 columns a lane has 4t to 4t +
/// 3 of both operands, in whatever order they are summed.
template <int kRows, int kKeys, int kQRows, int kColumns, Swizzle kOfQ, int kKRows, Swizzle kOfK>
__device__ __forceinline__ void scores_again(Accumulator<kRows, kKeys> &s,
                                             const SharedTile<e4m3, kQRows, kColumns, kOfQ> &q, int q_row,
                                             const SharedTile<e4m3, kKRows, kColumns, kOfK> &k, ptx::Site site) {
  const int lane = ptx::recompute(ptx::thread_index()) % 32, row = ptx::recompute(q_row) + lane / 4;
  clear(s);
#pragma unroll 1
  for (int column = lane % 4 * 4; column < kColumns; column += 16)
#pragma unroll
    for (int slab = 0; slab < kRows / 16; ++slab) {
      unsigned a[4], word[1];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        ptx::ld_shared(word, q.address(row + 16 * slab + 8 * half, column), site);
        a[half] = ptx::widen_bytes<e4m3>(static_cast<unsigned short>(word[0]));
        a[half + 2] = ptx::widen_bytes<e4m3>(static_cast<unsigned short>(word[0] >> 16));
      }
#pragma unroll
      for (int tile = 0; tile < kKeys / 8; ++tile) {
        ptx::ld_shared(word, k.address(8 * tile + lane / 4, column), site);
        ptx::mma_m16n8k16_f32_f16(s.value[slab][tile], a, ptx::widen_bytes<e4m3>(static_cast<unsigned short>(word[0])),
                                  ptx::widen_bytes<e4m3>(static_cast<unsigned short>(word[0] >> 16)), site);
      }
    }
}

} // namespace fagen::device
