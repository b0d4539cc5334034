// fagen: products of 16-bit operands with tiles of one-byte elements, which become 16 bits on their way to the product.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ldmatrix moves 16 bits at a time. Of bytes these are two neighbours of a row, so that a lane gets four neighbouring
// columns of 16 where it would have two pairs: with t = lane % 4, columns 4t to 4t + 3 for columns 2t, 2t + 1, 2t + 8
// and 2t + 9. What is summed over may come in any order within a step, as long as both operands have the same: so the
// left operand of a b^T is loaded in this order, a QuadOperand. The result of a b has its columns in it, a
// QuadAccumulator, until `convert` puts them in their places.
#pragma once

#include <fagen/device/ops/mma.h>
#include <fagen/device/ptx/bytes.h>
#include <fagen/device/ptx/math.h>
#include <fagen/device/ptx/shuffle.h>

namespace fagen::device {

/// A left operand whose lanes have columns 4t to 4t + 3 of each 16.
template <class T, int kFragmentRows, int kFragmentColumns>
struct QuadOperand : LeftOperand<T, kFragmentRows, kFragmentColumns> {};

/// Results whose lanes have columns 4t to 4t + 3 of each 16: the even ones in the first of two tiles.
template <int kFragmentRows, int kFragmentColumns>
struct QuadAccumulator : Accumulator<kFragmentRows, kFragmentColumns> {};

/// Two bytes in the lower half of `pair`, as two elements of T. Exact; NaN stays NaN.
template <class Byte> __device__ __forceinline__ unsigned widen(f16, unsigned pair) {
  return ptx::widen_bytes<Byte>(static_cast<unsigned short>(pair));
}
template <class Byte> __device__ __forceinline__ unsigned widen(bf16, unsigned pair) {
  const unsigned wide = ptx::widen_bytes<Byte>(static_cast<unsigned short>(pair));
  return ptx::round_pair<bf16>(ptx::to_float(f16{static_cast<unsigned short>(wide)}),
                               ptx::to_float(f16{static_cast<unsigned short>(wide >> 16)}));
}

/// Two columns of two rows, a row's in each half of `word`: a column's elements side by side.
template <class Byte, class T> __device__ __forceinline__ void widen_columns(unsigned (&columns)[2], unsigned word) {
  const unsigned upper = widen<Byte>(T{}, word & 0xffffu), lower = widen<Byte>(T{}, word >> 16);
  columns[0] = (upper & 0xffffu) | lower << 16;
  columns[1] = upper >> 16 | (lower & 0xffff0000u);
}

/// The lane's address of columns 4t to 4t + 3 of row g.
template <class Tile> __device__ __forceinline__ unsigned quads_corner(const Tile &tile, int row) {
  const int lane = ptx::lane_index();
  return ptx::recompute(tile.address(row + lane / 4, lane % 4 * 4));
}

/// 16 rows and 16 columns of a left operand, by the address of quads_corner.
template <class Tile>
__device__ __forceinline__ void load_quads(unsigned (&a)[4], unsigned corner, int row, int column, ptx::Site site) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    unsigned words[2];
    ptx::ld_shared(words, slice_address<Tile>(corner, row + 8 * half, column), site);
    a[half] = words[0];
    a[2 + half] = words[1];
  }
}

template <class T, int kRows, int kColumns, class Tile>
__device__ __forceinline__ void load_operand(QuadOperand<T, kRows, kColumns> &operand, const Tile &tile, int row,
                                             ptx::Site site = ptx::Site::here()) {
  const unsigned corner = quads_corner(tile, row);
#pragma unroll
  for (int slice = 0; slice < kColumns / 16; ++slice)
#pragma unroll
    for (int slab = 0; slab < kRows / 16; ++slab)
      load_quads<Tile>(operand.value[slab][slice], corner, 16 * slab, 16 * slice, site);
}

/// Accumulator += a[:, 32 columns] * (rows of b, the same 32 columns)^T; a by slices of 16 columns.
template <class T, class Acc, class Tile>
__device__ __forceinline__ void widen_abt_slices(Acc &accumulator, const unsigned (&a)[Acc::kSlabs][2][4],
                                                 unsigned b_corner, int column, ptx::Site site) {
#pragma unroll
  for (int tile = 0; tile < Acc::kTiles; tile += 2) {
    unsigned b[4]; // by tile and slice
    ptx::ldmatrix_x4(b, slice_address<Tile>(b_corner, 8 * tile, column), site);
#pragma unroll
    for (int slice = 0; slice < 2; ++slice)
#pragma unroll
      for (int of_two = 0; of_two < 2; ++of_two) {
        const unsigned word = b[2 * of_two + slice];
        const unsigned first = widen<typename Tile::Element>(T{}, word & 0xffffu),
                       second = widen<typename Tile::Element>(T{}, word >> 16);
#pragma unroll
        for (int slab = 0; slab < Acc::kSlabs; ++slab)
          mma_tile(T{}, accumulator.value[slab][tile + of_two], a[slab][slice], first, second, site);
      }
  }
}

/// The lane's address for ldmatrix.x4 of 16 rows of 32 bytes whose matrices go along the columns first.
template <class Tile> __device__ __forceinline__ unsigned byte_columns_first_corner(const Tile &tile, int row) {
  const int lane = ptx::lane_index();
  return ptx::recompute(tile.address(row + lane / 16 * 8 + lane % 8, lane / 8 % 2 * 16));
}

/// Accumulator = a * (rows [row, row + Acc::kColumns) of b)^T, a in registers.
template <class T, int kRows, int kColumns, class Acc, class Tile>
__device__ __forceinline__ void mma_abt(Acc &accumulator, const QuadOperand<T, kRows, kColumns> &a, const Tile &b,
                                        int row, ptx::Site site = ptx::Site::here()) {
  const unsigned b_corner = byte_columns_first_corner(b, row);
  clear(accumulator);
#pragma unroll
  for (int column = 0; column < kColumns; column += 32) {
    unsigned a_slices[Acc::kSlabs][2][4];
#pragma unroll
    for (int slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
      for (int slice = 0; slice < 2; ++slice)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          a_slices[slab][slice][i] = a.value[slab][column / 16 + slice][i];
    widen_abt_slices<T, Acc, Tile>(accumulator, a_slices, b_corner, column, site);
  }
}

/// Accumulator = (rows [a_row, a_row + Acc::kRows) of a) * (rows [row, row + Acc::kColumns) of b)^T, both in shared
/// memory, b of bytes.
template <class T, int kRows, int kColumns, Swizzle kSwizzle, class Acc, class Byte, int kKeys, Swizzle kOfKeys>
__device__ __forceinline__ void widen_abt(Acc &accumulator, const SharedTile<T, kRows, kColumns, kSwizzle> &a,
                                          int a_row, const SharedTile<Byte, kKeys, kColumns, kOfKeys> &b, int row,
                                          ptx::Site site) {
  using ATile = SharedTile<T, kRows, kColumns, kSwizzle>;
  const unsigned a_corner = quads_corner(a, a_row), b_corner = byte_columns_first_corner(b, row);
  clear(accumulator);
#pragma unroll
  for (int column = 0; column < kColumns; column += 32) {
    unsigned a_slices[Acc::kSlabs][2][4];
#pragma unroll
    for (int slab = 0; slab < Acc::kSlabs; ++slab)
#pragma unroll
      for (int slice = 0; slice < 2; ++slice)
        load_quads<ATile>(a_slices[slab][slice], a_corner, 16 * slab, column + 16 * slice, site);
    widen_abt_slices<T, Acc, SharedTile<Byte, kKeys, kColumns, kOfKeys>>(accumulator, a_slices, b_corner, column, site);
  }
}
template <class T, int kRows, int kColumns, Swizzle kSwizzle, class Acc, int kKeys, Swizzle kOfKeys>
__device__ __forceinline__ void mma_abt(Acc &accumulator, const SharedTile<T, kRows, kColumns, kSwizzle> &a, int a_row,
                                        const SharedTile<e4m3, kKeys, kColumns, kOfKeys> &b, int row,
                                        ptx::Site site = ptx::Site::here()) {
  widen_abt(accumulator, a, a_row, b, row, site);
}
template <class T, int kRows, int kColumns, Swizzle kSwizzle, class Acc, int kKeys, Swizzle kOfKeys>
__device__ __forceinline__ void mma_abt(Acc &accumulator, const SharedTile<T, kRows, kColumns, kSwizzle> &a, int a_row,
                                        const SharedTile<e5m2, kKeys, kColumns, kOfKeys> &b, int row,
                                        ptx::Site site = ptx::Site::here()) {
  widen_abt(accumulator, a, a_row, b, row, site);
}

/// Accumulator += a * (rows [row, row + kColumns) of b), a in registers, b of bytes. A matrix of ldmatrix has bytes 2g
/// and 2g + 1 of rows 2t and 2t + 1 for lane 4g + t: an even and an odd column of the result.
template <class T, int kRows, int kColumns, int kAccRows, int kAccColumns, class Tile>
__device__ __forceinline__ void mma_ab(QuadAccumulator<kAccRows, kAccColumns> &accumulator,
                                       const LeftOperand<T, kRows, kColumns> &a, const Tile &b, int row,
                                       ptx::Site site = ptx::Site::here()) {
  const unsigned b_corner = rows_first_corner(b, row);
#pragma unroll
  for (int slice = 0; slice < kColumns / 16; ++slice)
#pragma unroll
    for (int column = 0; column < kAccColumns; column += 32) {
      unsigned b_block[4]; // by 16 columns and eight rows
      ptx::ldmatrix_x4_trans(b_block, slice_address<Tile>(b_corner, 16 * slice, column), site);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        unsigned first[2], second[2]; // by column: rows 2t and 2t + 1 of the first eight, and of the others
        widen_columns<typename Tile::Element, T>(first, b_block[2 * half]);
        widen_columns<typename Tile::Element, T>(second, b_block[2 * half + 1]);
#pragma unroll
        for (int odd = 0; odd < 2; ++odd)
#pragma unroll
          for (int slab = 0; slab < kAccRows / 16; ++slab)
            mma_tile(T{}, accumulator.value[slab][column / 8 + 2 * half + odd], a.value[slab][slice], first[odd],
                     second[odd], site);
      }
    }
}

/// The same values with their columns in their places. Columns 2p and 2p + 1 of a row's 16 are pair p: lane t has pairs
/// 2t and 2t + 1, and gets pair t of the first tile and pair 4 + t of the second. The lanes in the middle of the quad
/// exchange theirs; then neighbours do, one pair each.
template <int kRows, int kColumns>
__device__ __forceinline__ void convert(Accumulator<kRows, kColumns> &sorted,
                                        const QuadAccumulator<kRows, kColumns> &quads,
                                        ptx::Site site = ptx::Site::here()) {
  const int t = ptx::lane_index() % 4;
  const bool is_middle = t == 1 || t == 2, is_odd = t & 1;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int tile = 0; tile < kColumns / 8; tile += 2)
#pragma unroll
      for (int row = 0; row < 4; row += 2) // of the two that a lane has
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) { // the pairs' first and second column
          float first = quads.value[slab][tile + odd][row], second = quads.value[slab][tile + odd][row + 1];
          const float first_there = ptx::shuffle_xor(first, 3, site), second_there = ptx::shuffle_xor(second, 3, site);
          first = is_middle ? first_there : first;
          second = is_middle ? second_there : second;
          const float got = ptx::shuffle_xor(is_odd ? first : second, 1, site);
          sorted.value[slab][tile][row + odd] = is_odd ? got : first;
          sorted.value[slab][tile + 1][row + odd] = is_odd ? second : got;
        }
}

} // namespace fagen::device
