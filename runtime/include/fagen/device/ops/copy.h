// fagen: tiles of Q, K and V from global to shared memory. Rows at or beyond the limit are filled with zero.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile is cut into vectors of kVectorBytes, row by row; vector i is thread i % kThreads's. `source` is row 0 of the
// tensor's head, `row_stride` counts elements, rows [first_row, first_row + Tile::kRows) are copied.
#pragma once

#include <fagen/device/ptx/cp_async.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/tile/shared_tile.h>

namespace fagen::device {

/// Calls visit(row, column) for each vector of this thread.
template <int kThreads, int kVectorBytes, class Tile, class Visit>
__device__ __forceinline__ void for_own_vectors(Visit visit) {
  constexpr int kElements = kVectorBytes / static_cast<int>(sizeof(typename Tile::Element));
  constexpr int kVectorsPerRow = Tile::kColumns / kElements;
  constexpr int kVectors = Tile::kRows * kVectorsPerRow;
  const int thread = ptx::thread_index();
  if constexpr (kThreads % kVectorsPerRow == 0) { // every vector of a thread has the same column
    constexpr int kRowsPerPass = kThreads / kVectorsPerRow;
    constexpr int kPasses = (Tile::kRows + kRowsPerPass - 1) / kRowsPerPass;
    constexpr int kUnroll = kPasses <= 16 ? kPasses : 4; // small vectors take many passes: registers, not code
    const int first_row = static_cast<int>(ptx::recompute(thread / kVectorsPerRow));
    const int column = thread % kVectorsPerRow * kElements;
#pragma unroll kUnroll
    for (int row = 0; row < Tile::kRows; row += kRowsPerPass)
      if (Tile::kRows % kRowsPerPass == 0 || row + first_row < Tile::kRows)
        visit(row + first_row, column);
  } else {
#pragma unroll 4
    for (int vector = thread; vector < kVectors; vector += kThreads)
      visit(vector / kVectorsPerRow, vector % kVectorsPerRow * kElements);
  }
}

/// Issues the copies; they land at any time before a cp_async_wait that covers their group.
template <int kThreads, int kVectorBytes, class Tile>
__device__ __forceinline__ void copy_tile_async(const Tile &tile, const typename Tile::Element *source,
                                                long long row_stride, int first_row, int limit,
                                                ptx::Site site = ptx::Site::here()) {
  const int valid_rows = limit - first_row;
  for_own_vectors<kThreads, kVectorBytes, Tile>([&](int row, int column) {
    ptx::cp_async<kVectorBytes>(tile.address(row, column), source + (first_row + row) * row_stride + column,
                                row < valid_rows, site);
  });
}

/// Loads to registers and stores to shared memory; done when the thread goes on.
template <int kThreads, int kVectorBytes, class Tile>
__device__ __forceinline__ void copy_tile(const Tile &tile, const typename Tile::Element *source, long long row_stride,
                                          int first_row, int limit, ptx::Site site = ptx::Site::here()) {
  const int valid_rows = limit - first_row;
  for_own_vectors<kThreads, kVectorBytes, Tile>([&](int row, int column) {
    const typename Tile::Element *from = source + (first_row + row) * row_stride + column;
    if constexpr (kVectorBytes == 2) {
      const unsigned short value = row < valid_rows ? ptx::ld_global_u16(from, site) : static_cast<unsigned short>(0);
      ptx::st_shared_u16(tile.address(row, column), value, site);
    } else {
      unsigned words[kVectorBytes / 4] = {};
      if (row < valid_rows)
        ptx::ld_global(words, from, site);
      ptx::st_shared(tile.address(row, column), words, site);
    }
  });
}

} // namespace fagen::device
