// fagen: warp-level matrix products by mma.sync m16n8k16, their operands from shared memory by ldmatrix.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/ldmatrix.h>
#include <fagen/device/ptx/mma.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/tile/fragment.h>
#include <fagen/device/tile/shared_tile.h>

namespace fagen::device {

/// One m16n8k16 product for the element type.
__device__ __forceinline__ void mma_tile(f16, float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                         ptx::Site site) {
  ptx::mma_m16n8k16_f32_f16(d, a, b0, b1, site);
}
__device__ __forceinline__ void mma_tile(bf16, float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                         ptx::Site site) {
  ptx::mma_m16n8k16_f32_bf16(d, a, b0, b1, site);
}

/// The lane's address for ldmatrix.x4 of 16 rows of 32 bytes, a 16 x 16 block of 16 bits, whose matrices go down the
/// rows first: the left operand, and the right operand of A B when transposed on the way.
template <class Tile> __device__ __forceinline__ unsigned rows_first_corner(const Tile &tile, int row) {
  const int lane = ptx::lane_index();
  return ptx::recompute(
      tile.address(row + lane % 16, lane / 16 * (16 / static_cast<int>(sizeof(typename Tile::Element)))));
}

/// The same with the matrices going along the columns first: the right operand of A B^T.
template <class Tile> __device__ __forceinline__ unsigned columns_first_corner(const Tile &tile, int row) {
  const int lane = ptx::lane_index();
  return ptx::recompute(tile.address(row + lane / 16 * 8 + lane % 8, lane / 8 % 2 * 8));
}

/// Loads rows [row, row + Operand::kRows) of the tile as a left operand.
template <class Operand, class Tile>
__device__ __forceinline__ void load_operand(Operand &operand, const Tile &tile, int row,
                                             ptx::Site site = ptx::Site::here()) {
  const unsigned corner = rows_first_corner(tile, row);
#pragma unroll
  for (int slice = 0; slice < Operand::kSlices; ++slice)
#pragma unroll
    for (int slab = 0; slab < Operand::kSlabs; ++slab)
      ptx::ldmatrix_x4(operand.value[slab][slice],
                       slice_address<Tile>(corner, 16 * slab, Operand::kColumns / Operand::kSlices * slice), site);
}

template <class Acc> __device__ __forceinline__ void clear(Acc &accumulator) {
#pragma unroll
  for (int slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
    for (int tile = 0; tile < Acc::kTiles; ++tile)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        accumulator.value[slab][tile][i] = 0.0f;
}

/// Accumulator += a[:, 16 columns] * (rows [row, row + Acc::kColumns) of b, the same 16 columns)^T.
template <class Acc, class Tile>
__device__ __forceinline__ void mma_abt_slice(Acc &accumulator, const unsigned (&a)[Acc::kSlabs][4], unsigned b_corner,
                                              int slice, ptx::Site site) {
#pragma unroll
  for (int tile = 0; tile < Acc::kTiles; tile += 2) {
    unsigned b[4];
    ptx::ldmatrix_x4(b, slice_address<Tile>(b_corner, 8 * tile, 16 * slice), site);
#pragma unroll
    for (int slab = 0; slab < Acc::kSlabs; ++slab) {
      mma_tile(typename Tile::Element{}, accumulator.value[slab][tile], a[slab], b[0], b[1], site);
      mma_tile(typename Tile::Element{}, accumulator.value[slab][tile + 1], a[slab], b[2], b[3], site);
    }
  }
}

/// Accumulator += a * (rows [row, row + Acc::kColumns) of b)^T, a in registers.
template <class T, int kRows, int kColumns, class Acc, class Tile>
__device__ __forceinline__ void mma_add_abt(Acc &accumulator, const LeftOperand<T, kRows, kColumns> &a, const Tile &b,
                                            int row, ptx::Site site = ptx::Site::here()) {
  const unsigned b_corner = columns_first_corner(b, row);
#pragma unroll
  for (int slice = 0; slice < kColumns / 16; ++slice) {
    unsigned a_slice[Acc::kSlabs][4];
#pragma unroll
    for (int slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a_slice[slab][i] = a.value[slab][slice][i];
    mma_abt_slice<Acc, Tile>(accumulator, a_slice, b_corner, slice, site);
  }
}

/// Accumulator = the same.
template <class T, int kRows, int kColumns, class Acc, class Tile>
__device__ __forceinline__ void mma_abt(Acc &accumulator, const LeftOperand<T, kRows, kColumns> &a, const Tile &b,
                                        int row, ptx::Site site = ptx::Site::here()) {
  clear(accumulator);
  mma_add_abt(accumulator, a, b, row, site);
}

/// Accumulator += all slices of a product of two shared tiles, by the lane's addresses of their first ones.
template <class ATile, class BTile, class Acc>
__device__ __forceinline__ void add_abt_slices(Acc &accumulator, unsigned a_corner, unsigned b_corner, ptx::Site site) {
#pragma unroll
  for (int slice = 0; slice < ATile::kColumns / 16; ++slice) {
    unsigned a_slice[Acc::kSlabs][4];
#pragma unroll
    for (int slab = 0; slab < Acc::kSlabs; ++slab)
      ptx::ldmatrix_x4(a_slice[slab], slice_address<ATile>(a_corner, 16 * slab, 16 * slice), site);
    mma_abt_slice<Acc, BTile>(accumulator, a_slice, b_corner, slice, site);
  }
}

/// Accumulator = (rows [a_row, a_row + Acc::kRows) of a) * (rows [row, row + Acc::kColumns) of b)^T, both in shared
/// memory.
template <class T, int kRows, int kColumns, Swizzle kSwizzle, class Acc, class Tile>
__device__ __forceinline__ void mma_abt(Acc &accumulator, const SharedTile<T, kRows, kColumns, kSwizzle> &a, int a_row,
                                        const Tile &b, int row, ptx::Site site = ptx::Site::here()) {
  const unsigned a_corner = rows_first_corner(a, a_row);
  const unsigned b_corner = columns_first_corner(b, row);
  clear(accumulator);
  add_abt_slices<SharedTile<T, kRows, kColumns, kSwizzle>, Tile>(accumulator, a_corner, b_corner, site);
}

/// Accumulator += the same.
template <class ATile, class Acc, class Tile>
__device__ __forceinline__ void mma_add_abt(Acc &accumulator, const ATile &a, int a_row, const Tile &b, int row,
                                            ptx::Site site = ptx::Site::here()) {
  add_abt_slices<ATile, Tile>(accumulator, rows_first_corner(a, a_row), columns_first_corner(b, row), site);
}

/// Accumulator += a[:, 16 columns] * (16 rows of b).
template <class Acc, class Tile>
__device__ __forceinline__ void mma_ab_slice(Acc &accumulator, const unsigned (&a)[Acc::kSlabs][4], unsigned b_corner,
                                             int slice, ptx::Site site) {
  using T = typename Tile::Element;
#pragma unroll
  for (int tile = 0; tile < Acc::kTiles; tile += 2) {
    unsigned b[4];
    ptx::ldmatrix_x4_trans(b, slice_address<Tile>(b_corner, 16 * slice, 8 * tile), site);
#pragma unroll
    for (int slab = 0; slab < Acc::kSlabs; ++slab) {
      mma_tile(T{}, accumulator.value[slab][tile], a[slab], b[0], b[1], site);
      mma_tile(T{}, accumulator.value[slab][tile + 1], a[slab], b[2], b[3], site);
    }
  }
}

/// Accumulator += a * (rows [row, row + kColumns) of b), a in registers.
template <class T, int kRows, int kColumns, class Acc, class Tile>
__device__ __forceinline__ void mma_ab(Acc &accumulator, const LeftOperand<T, kRows, kColumns> &a, const Tile &b,
                                       int row, ptx::Site site = ptx::Site::here()) {
  const unsigned b_corner = rows_first_corner(b, row);
#pragma unroll
  for (int slice = 0; slice < kColumns / 16; ++slice)
#pragma unroll
    for (int tile = 0; tile < Acc::kTiles; tile += 2) {
      unsigned b_block[4];
      ptx::ldmatrix_x4_trans(b_block, slice_address<Tile>(b_corner, 16 * slice, 8 * tile), site);
#pragma unroll
      for (int slab = 0; slab < Acc::kSlabs; ++slab) {
        mma_tile(T{}, accumulator.value[slab][tile], a.value[slab][slice], b_block[0], b_block[1], site);
        mma_tile(T{}, accumulator.value[slab][tile + 1], a.value[slab][slice], b_block[2], b_block[3], site);
      }
    }
}

/// Accumulator = the same.
template <class T, int kRows, int kColumns, class Acc, class Tile>
__device__ __forceinline__ void mma_first_ab(Acc &accumulator, const LeftOperand<T, kRows, kColumns> &a, const Tile &b,
                                             int row, ptx::Site site = ptx::Site::here()) {
  clear(accumulator);
  mma_ab(accumulator, a, b, row, site);
}

/// Accumulator += (rows [a_row, a_row + Acc::kRows) of a) * (rows of b from `row` on), both in shared memory.
template <class ATile, class Acc, class BTile>
__device__ __forceinline__ void mma_ab(Acc &accumulator, const ATile &a, int a_row, const BTile &b, int row,
                                       ptx::Site site = ptx::Site::here()) {
  const unsigned a_corner = rows_first_corner(a, a_row), b_corner = rows_first_corner(b, row);
#pragma unroll
  for (int slice = 0; slice < ATile::kColumns / 16; ++slice) {
    unsigned a_slice[Acc::kSlabs][4];
#pragma unroll
    for (int slab = 0; slab < Acc::kSlabs; ++slab)
      ptx::ldmatrix_x4(a_slice[slab], slice_address<ATile>(a_corner, 16 * slab, 16 * slice), site);
    mma_ab_slice<Acc, BTile>(accumulator, a_slice, b_corner, slice, site);
  }
}

/// Accumulator = the same.
template <class ATile, class Acc, class BTile>
__device__ __forceinline__ void mma_first_ab(Acc &accumulator, const ATile &a, int a_row, const BTile &b, int row,
                                             ptx::Site site = ptx::Site::here()) {
  clear(accumulator);
  mma_ab(accumulator, a, a_row, b, row, site);
}

/// Accumulator += (columns [a_column, a_column + Acc::kRows) of a)^T * (rows of b from `row` on), both in shared
/// memory: blocks of a are transposed on the way.
template <class ATile, class Acc, class BTile>
__device__ __forceinline__ void mma_add_atb(Acc &accumulator, const ATile &a, int a_column, const BTile &b, int row,
                                            ptx::Site site = ptx::Site::here()) {
  const int lane = ptx::lane_index();
  const unsigned b_corner = rows_first_corner(b, row);
  unsigned a_corner[Acc::kSlabs];
#pragma unroll
  for (int slab = 0; slab < Acc::kSlabs; ++slab)
    a_corner[slab] = ptx::recompute(a.address(lane / 16 * 8 + lane % 8, a_column + 16 * slab + lane / 8 % 2 * 8));
#pragma unroll
  for (int slice = 0; slice < ATile::kRows / 16; ++slice) {
    unsigned a_slice[Acc::kSlabs][4];
#pragma unroll
    for (int slab = 0; slab < Acc::kSlabs; ++slab)
      ptx::ldmatrix_x4_trans(a_slice[slab], a_corner[slab] + 16 * slice * ATile::kPanelBytes, site);
    mma_ab_slice<Acc, BTile>(accumulator, a_slice, b_corner, slice, site);
  }
}

/// Accumulator = the same.
template <class ATile, class Acc, class BTile>
__device__ __forceinline__ void mma_atb(Acc &accumulator, const ATile &a, int a_column, const BTile &b, int row,
                                        ptx::Site site = ptx::Site::here()) {
  clear(accumulator);
  mma_add_atb(accumulator, a, a_column, b, row, site);
}

} // namespace fagen::device
