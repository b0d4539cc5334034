// fagen: results to global memory. Rows at or beyond the limit are not written.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ops/softmax.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/stmatrix.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/tile/rows.h>
#include <fagen/device/tile/shared_tile.h>

namespace fagen::device {

/// Two neighbouring elements, in one access where kVectorBytes allows it.
template <int kVectorBytes, class T>
__device__ __forceinline__ void store_pair(T *target, float low, float high, ptx::Site site) {
  if constexpr (kVectorBytes >= 4) {
    ptx::st_global_u32(target, ptx::round_pair<T>(low, high), site);
  } else {
    ptx::st_global_u16(target, ptx::round_to<T>(low).bits, site);
    ptx::st_global_u16(target + 1, ptx::round_to<T>(high).bits, site);
  }
}

/// Word i of lane t of a quad becomes word t of lane i: a lane has two neighbouring columns of each of four tiles, and
/// then the eight columns of one. Two exchanges, after each of which one more bit of i and t has changed places.
__device__ __forceinline__ void transpose_in_quad(unsigned (&words)[4], ptx::Site site) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2) {
    const bool is_upper = (ptx::lane_index() & bit) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if ((i & bit) == 0) {
        const unsigned other = ptx::shuffle_xor(is_upper ? words[i] : words[i + bit], bit, site);
        (is_upper ? words[i] : words[i + bit]) = other;
      }
  }
}

/// Rows of o; `target` is row 0, from which `rows` (tile/rows.h) leads to the others; the fragment's first row is
/// `first_row`. With vectors of 16 bytes a quad hands its elements round, so that a lane has a whole vector: first all
/// of a row, and then they are stored after one branch, from one address, lest one exchange waits for another's store.
template <int kVectorBytes, class T, class RowMap, int kRows, int kColumns>
__device__ __forceinline__ void store_rows(T *target, const RowMap &rows, const Accumulator<kRows, kColumns> &o,
                                           int first_row, int limit, ptx::Site site = ptx::Site::here()) {
  constexpr int kTiles = kColumns / 8, kWholeTiles = kVectorBytes == 16 ? kTiles / 4 * 4 : 0;
  const int lane = ptx::recompute(ptx::thread_index()) % 32, lane_of_quad = lane % 4; // not kept across the loop
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = ptx::recompute(first_row + 16 * slab + 8 * half + lane / 4);
      unsigned vectors[kWholeTiles / 4 + 1][4];
#pragma unroll
      for (int tile = 0; tile < kWholeTiles; ++tile)
        vectors[tile / 4][tile % 4] =
            ptx::round_pair<T>(o.value[slab][tile][2 * half], o.value[slab][tile][2 * half + 1]);
#pragma unroll
      for (int i = 0; i < kWholeTiles / 4; ++i)
        transpose_in_quad(vectors[i], site);
      if (row >= limit)
        continue;
      T *const row_target = target + row_offset(rows, row);
      T *const vector_target = ptx::recompute(row_target + 8 * lane_of_quad);
#pragma unroll
      for (int i = 0; i < kWholeTiles / 4; ++i)
        ptx::st_global(vector_target + 32 * i, vectors[i], site);
#pragma unroll
      for (int tile = kWholeTiles; tile < kTiles; ++tile)
        store_pair<kVectorBytes>(row_target + 8 * tile + 2 * lane_of_quad, o.value[slab][tile][2 * half],
                                 o.value[slab][tile][2 * half + 1], site);
    }
}

/// Rows of o, columns from kFirst on, to rows first_row, ... of a tile, as many as it has: two tiles of eight columns
/// at once.
template <int kFirst = 0, class Tile, int kRows, int kColumns>
__device__ __forceinline__ void stage_rows(const Tile &tile, const Accumulator<kRows, kColumns> &o, int first_row,
                                           ptx::Site site = ptx::Site::here()) {
  using T = typename Tile::Element;
  constexpr int kStaged = kColumns - kFirst < Tile::kColumns ? kColumns - kFirst : Tile::kColumns;
  static_assert(kFirst % 8 == 0 && kStaged % 16 == 0, "pairs of the accumulator's tiles");
  const int lane = ptx::recompute(ptx::thread_index()) % 32, matrix = lane / 8; // not kept across the loop
  const unsigned corner = tile.address(first_row + matrix % 2 * 8 + lane % 8, matrix / 2 * 8);
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int pair = 0; pair < kStaged / 16; ++pair) {
      unsigned words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float(&own)[4] = o.value[slab][kFirst / 8 + 2 * pair + i / 2];
        words[i] = ptx::round_pair<T>(own[i % 2 * 2], own[i % 2 * 2 + 1]);
      }
      ptx::stmatrix_x4(slice_address<Tile>(corner, 16 * slab, 16 * pair), words, site);
    }
}

/// A value for each row, to a column of f32: of the lanes that have a row's value one stores it.
template <class Tile, int kRows>
__device__ __forceinline__ void stage_rows(const Tile &column, const RowValues<kRows> &values, int first_row,
                                           ptx::Site site = ptx::Site::here()) {
  static_assert(Tile::kColumns == 1 && Tile::kSwizzle == Swizzle::kNone, "a value for each row");
  const int lane = ptx::recompute(ptx::thread_index()) % 32;
  if (lane % 4 != 0)
    return;
  const unsigned own = column.base() + 4 * (first_row + lane / 4);
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      ptx::st_shared_f32(own + 64 * slab + 32 * half, values.value[slab][half], site);
}

/// Log-sum-exp of each row; nothing when the caller gave no pointer. `target` is row 0.
template <class RowMap, int kRows>
__device__ __forceinline__ void store_lse(float *target, const RowMap &rows, const RowValues<kRows> &m,
                                          const RowValues<kRows> &l, float scale, int first_row, int limit,
                                          ptx::Site site = ptx::Site::here()) {
  if (target == nullptr || ptx::lane_index() % 4 != 0)
    return;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + 16 * slab + 8 * half + ptx::lane_index() / 4;
      if (row < limit)
        ptx::st_global_f32(target + row_offset(rows, row), log_sum_exp(m.value[slab][half], l.value[slab][half], scale),
                           site);
    }
}
template <int kRows>
__device__ __forceinline__ void store_lse(float *target, const RowValues<kRows> &m, const RowValues<kRows> &l,
                                          float scale, int first_row, int limit, ptx::Site site = ptx::Site::here()) {
  store_lse(target, 1LL, m, l, scale, first_row, limit, site);
}

} // namespace fagen::device
