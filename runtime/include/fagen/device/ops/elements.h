// fagen: elements of a shared tile where an accumulator has them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// For work element by element on what lies in memory: a lane reads the pairs of columns that are its own, and nobody
// exchanges anything. f16 and bf16 become f32 exactly.
#pragma once

#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/math.h>
#include <fagen/device/ptx/shared.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/tile/fragment.h>
#include <fagen/device/tile/shared_tile.h>
#include <fagen/device/types.h>

namespace fagen::device {

/// Two neighbouring elements.
template <class T> __device__ __forceinline__ void load_two(float (&pair)[2], unsigned address, ptx::Site site) {
  unsigned word[1];
  ptx::ld_shared(word, address, site);
  pair[0] = ptx::to_float(T{static_cast<unsigned short>(word[0] & 0xffffu)});
  pair[1] = ptx::to_float(T{static_cast<unsigned short>(word[0] >> 16)});
}
template <> __device__ __forceinline__ void load_two<float>(float (&pair)[2], unsigned address, ptx::Site site) {
  ptx::ld_shared_f32x2(pair, address, site);
}

/// The tile's rows from `row` and columns from `column` on.
template <int kRows, int kColumns, class Tile>
__device__ __forceinline__ void convert(Accumulator<kRows, kColumns> &elements, const Tile &tile, int row,
                                        int column = 0, ptx::Site site = ptx::Site::here()) {
  static_assert(kColumns <= Tile::kColumns, "an accumulator has columns of the tile");
  const int lane = ptx::thread_index() % 32;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int of8 = 0; of8 < kColumns / 8; ++of8)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float pair[2];
        load_two<typename Tile::Element>(
            pair, tile.address(row + 16 * slab + 8 * half + lane / 4, column + 8 * of8 + lane % 4 * 2), site);
        elements.value[slab][of8][2 * half] = pair[0];
        elements.value[slab][of8][2 * half + 1] = pair[1];
      }
}

/// A value for each row, to row_of(row), of rows from first_row on that are below `rows`.
template <class RowOf, int kRows>
__device__ __forceinline__ void store_values(const RowOf &row_of, const RowValues<kRows> &values, int first_row,
                                             int rows, ptx::Site site = ptx::Site::here()) {
  if (ptx::lane_index() % 4 != 0)
    return;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + 16 * slab + 8 * half + ptx::lane_index() / 4;
      if (row < rows)
        ptx::st_global_f32(row_of(row), values.value[slab][half], site);
    }
}

} // namespace fagen::device
