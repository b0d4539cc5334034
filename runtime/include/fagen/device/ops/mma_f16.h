// fagen: warp-level matrix products whose sums are f16; what they add up to goes on in f32.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Boards whose tensor cores sum in f32 at half the rate gain by it. Scores are the f16 sums over all columns, P V those
// over the keys of a tile; O itself stays f32.
#pragma once

#include <fagen/device/ops/halves.h>
#include <fagen/device/ops/mma.h>

namespace fagen::device {

/// kRows x kColumns f16 sums, two neighbouring columns a word; else as an Accumulator.
template <int kFragmentRows, int kFragmentColumns>
struct HalfSums : ptx::Registers<unsigned[kFragmentRows / 16][kFragmentColumns / 8][2]> {
  static constexpr int kRows = kFragmentRows;
  static constexpr int kColumns = kFragmentColumns;
  static constexpr int kSlabs = kRows / 16;
  static constexpr int kTiles = kColumns / 8;
};

__device__ __forceinline__ void mma_tile(f16, unsigned (&d)[2], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                         ptx::Site site) {
  ptx::mma_m16n8k16_f16_f16(d, a, b0, b1, site);
}

template <int kRows, int kColumns> __device__ __forceinline__ void clear(HalfSums<kRows, kColumns> &sums) {
#pragma unroll
  for (int slab = 0; slab < sums.kSlabs; ++slab)
#pragma unroll
    for (int tile = 0; tile < sums.kTiles; ++tile)
      sums.value[slab][tile][0] = sums.value[slab][tile][1] = 0;
}

template <class Acc>
__device__ __forceinline__ void widen(Acc &accumulator, const HalfSums<Acc::kRows, Acc::kColumns> &sums) {
#pragma unroll
  for (int slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
    for (int tile = 0; tile < Acc::kTiles; ++tile)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        accumulator.value[slab][tile][2 * i] = low_half<f16>(sums.value[slab][tile][i]);
        accumulator.value[slab][tile][2 * i + 1] = high_half<f16>(sums.value[slab][tile][i]);
      }
}

/// Accumulator = a * (rows [row, row + Acc::kColumns) of b)^T, a in registers.
template <int kRows, int kColumns, class Acc, class Tile>
__device__ __forceinline__ void mma_abt_f16(Acc &accumulator, const LeftOperand<f16, kRows, kColumns> &a, const Tile &b,
                                            int row, ptx::Site site = ptx::Site::here()) {
  HalfSums<Acc::kRows, Acc::kColumns> sums;
  mma_abt(sums, a, b, row, site);
  widen(accumulator, sums);
}

/// Accumulator = (rows [a_row, a_row + Acc::kRows) of a) * (rows [row, row + Acc::kColumns) of b)^T, both in shared
/// memory.
template <int kRows, int kColumns, Swizzle kSwizzle, class Acc, class Tile>
__device__ __forceinline__ void mma_abt_f16(Acc &accumulator, const SharedTile<f16, kRows, kColumns, kSwizzle> &a,
                                            int a_row, const Tile &b, int row, ptx::Site site = ptx::Site::here()) {
  HalfSums<Acc::kRows, Acc::kColumns> sums;
  mma_abt(sums, a, a_row, b, row, site);
  widen(accumulator, sums);
}

/// Accumulator += a * (rows [row, row + kColumns) of b), a in registers. Two tiles of sums are held at a time.
template <int kRows, int kColumns, class Acc, class Tile>
__device__ __forceinline__ void mma_ab_f16(Acc &accumulator, const LeftOperand<f16, kRows, kColumns> &a, const Tile &b,
                                           int row, ptx::Site site = ptx::Site::here()) {
  const unsigned b_corner = rows_first_corner(b, row);
#pragma unroll
  for (int tile = 0; tile < Acc::kTiles; tile += 2) {
    HalfSums<kRows, 16> sums;
    clear(sums);
#pragma unroll
    for (int slice = 0; slice < kColumns / 16; ++slice) {
      unsigned b_block[4];
      ptx::ldmatrix_x4_trans(b_block, slice_address<Tile>(b_corner, 16 * slice, 8 * tile), site);
#pragma unroll
      for (int slab = 0; slab < Acc::kSlabs; ++slab) {
        mma_tile(f16{}, sums.value[slab][0], a.value[slab][slice], b_block[0], b_block[1], site);
        mma_tile(f16{}, sums.value[slab][1], a.value[slab][slice], b_block[2], b_block[3], site);
      }
    }
#pragma unroll
    for (int slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        accumulator.value[slab][tile + i / 2][2 * (i % 2)] += low_half<f16>(sums.value[slab][i / 2][i % 2]);
        accumulator.value[slab][tile + i / 2][2 * (i % 2) + 1] += high_half<f16>(sums.value[slab][i / 2][i % 2]);
      }
  }
}

} // namespace fagen::device
