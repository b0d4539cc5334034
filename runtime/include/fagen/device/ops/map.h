// fagen: any function of elements, where ops/softmax.h has none for it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// map(dst, first_row, first_key, f, x, y) makes f(dst's element, x's, y's, row, key) of each element of dst,
// (first_row, first_key) being the fragment's corner in the tensor. Of a vector of rows an element has the row's value.
#pragma once

#include <fagen/device/ops/functions.h>
#include <fagen/device/ops/softmax.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/tile/fragment.h>
#include <fagen/device/tile/shared_tile.h>

namespace fagen::device {

/// Element i of tile `tile` of a slab, or its row's value.
template <int kRows, int kColumns>
__device__ __forceinline__ float element(const Accumulator<kRows, kColumns> &x, int slab, int tile, int i) {
  return x.value[slab][tile][i];
}
template <int kRows> __device__ __forceinline__ float element(const RowValues<kRows> &x, int slab, int tile, int i) {
  return x.value[slab][i / 2];
}

/// A value for each column of a fragment: a thread's two of each tile.
template <int kFragmentColumns> struct ColumnValues : ptx::Registers<float[kFragmentColumns / 8][2]> {};

template <int kColumns>
__device__ __forceinline__ float element(const ColumnValues<kColumns> &x, int /*slab*/, int tile, int i) {
  return x.value[tile][i % 2];
}

/// From f32 in shared memory, a row of them.
template <class Tile>
__device__ __forceinline__ ColumnValues<Tile::kColumns> column_values(const Tile &row,
                                                                      ptx::Site site = ptx::Site::here()) {
  static_assert(Tile::kRows == 1 && Tile::kSwizzle == Swizzle::kNone, "a value for each column");
  ColumnValues<Tile::kColumns> values;
  const unsigned own = row.base() + ptx::recompute(ptx::thread_index()) % 4 * 8;
#pragma unroll
  for (int tile = 0; tile < Tile::kColumns / 8; ++tile)
    ptx::ld_shared_f32x2(values.value[tile], own + 32 * tile, site);
  return values;
}

/// From f32 in shared memory, a column of them: the warp's rows from `first_row` on.
template <int kRows, class Tile>
__device__ __forceinline__ RowValues<kRows> row_values(const Tile &column, int first_row,
                                                       ptx::Site site = ptx::Site::here()) {
  static_assert(Tile::kColumns == 1 && Tile::kSwizzle == Swizzle::kNone, "a value for each row");
  RowValues<kRows> values;
  const unsigned own = column.base() + 4 * (first_row + ptx::recompute(ptx::thread_index()) % 32 / 4);
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      values.value[slab][half] = ptx::ld_shared_f32(own + 64 * slab + 32 * half, site);
  return values;
}

template <int kRows, int kColumns, class F, class... Sources>
__device__ __forceinline__ void map(Accumulator<kRows, kColumns> &dst, int first_row, int first_key, F f,
                                    const Sources &...sources) {
  const int lane = ptx::recompute(ptx::thread_index()) % 32;
  const int row = ptx::recompute(first_row + lane / 4);
  const int key = first_key + lane % 4 * 2;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int tile = 0; tile < kColumns / 8; ++tile)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float &value = dst.value[slab][tile][i];
        value = f(value, element(sources, slab, tile, i)..., row + 16 * slab + i / 2 * 8, key + 8 * tile + i % 2);
      }
}

/// The same, and f is given the thread's first key, too, and how far the element's lies after that, which is a
/// constant of the unrolled text.
template <int kRows, int kColumns, class F, class... Sources>
__device__ __forceinline__ void map_along(Accumulator<kRows, kColumns> &dst, int first_row, int first_key, F f,
                                          const Sources &...sources) {
  const int lane = ptx::recompute(ptx::thread_index()) % 32;
  const int row = ptx::recompute(first_row + lane / 4);
  const int first = first_key + lane % 4 * 2;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int tile = 0; tile < kColumns / 8; ++tile)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float &value = dst.value[slab][tile][i];
        const int along = 8 * tile + i % 2;
        value = f(value, element(sources, slab, tile, i)..., row + 16 * slab + i / 2 * 8, first + along, first,
                  static_cast<float>(along));
      }
}

/// There is no key.
template <int kRows, class F, class... Sources>
__device__ __forceinline__ void map(RowValues<kRows> &dst, int first_row, int first_key, F f,
                                    const Sources &...sources) {
  const int row = first_row + ptx::recompute(ptx::thread_index()) % 32 / 4;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float &value = dst.value[slab][half];
      value = f(value, element(sources, slab, 0, 2 * half)..., row + 16 * slab + 8 * half, first_key);
    }
}

/// Whether some thread of the warp has a row whose values pass the test.
template <int kRows, class Test, class... Sources>
__device__ __forceinline__ bool any(const RowValues<kRows> &x, Test test, const Sources &...sources) {
  bool found = false;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      found |= test(x.value[slab][half], element(sources, slab, 0, 2 * half)...);
  return ptx::any(found, ptx::Site::here());
}

} // namespace fagen::device
