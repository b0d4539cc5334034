// fagen: tiles of Q, K and V from global to shared memory. Rows at or beyond the limit are filled with zero.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile is cut into vectors of kVectorBytes. kAcross threads stand side by side over a row's vectors, so many rows at
// once are a pass; a thread keeps its place in all passes, so what it adds to its addresses is the same for all.
// `source` is row 0 of the tensor's head, `row_stride` counts elements.
#pragma once

#include <fagen/device/ptx/cp_async.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/tile/shared_tile.h>

namespace fagen::device {

/// Which vectors of a tile are a thread's: row_of_thread() + kRowsPerPass i, column_of_thread() + kColumnsPerPass n.
template <int kThreads, int kVectorBytes, class Tile> struct TileShare {
  static constexpr int kElements = kVectorBytes / static_cast<int>(sizeof(typename Tile::Element));
  static constexpr int kAcross = threads_across(kVectorBytes, Tile::kColumns, sizeof(typename Tile::Element));
  static constexpr int kRowsPerPass = kThreads / kAcross;
  static constexpr int kColumnsPerPass = kAcross * kElements;
  static constexpr int kPasses = (Tile::kRows + kRowsPerPass - 1) / kRowsPerPass;
  static constexpr int kAlong = Tile::kColumns / kColumnsPerPass;
  /// Small vectors take many passes: registers, not code.
  static constexpr int kUnroll = kPasses * kAlong <= 16 ? kPasses : kAlong < 4 ? 4 / kAlong : 1;

  static __device__ __forceinline__ int row_of_thread() {
    return static_cast<int>(ptx::recompute(ptx::thread_index() / kAcross));
  }
  static __device__ __forceinline__ int column_of_thread() {
    return static_cast<int>(ptx::recompute(ptx::thread_index() % kAcross * kElements));
  }
  /// Whether the pass that begins at row `pass_row` has a row for the thread.
  static __device__ __forceinline__ bool has_row(int pass_row, int row) {
    return Tile::kRows % kRowsPerPass == 0 || pass_row + row < Tile::kRows;
  }
};

/// Where a thread's next vector of a tensor lies, and how many rows the tensor has from there on.
template <class T> struct TileCursor {
  const T *source;
  int rows;
};

/// At the tile that begins at `first_row`; rows at or beyond `limit` count as not there.
template <class Share, class T>
__device__ __forceinline__ TileCursor<T> tile_cursor(const T *source, long long row_stride, int first_row, int limit) {
  const int row = first_row + Share::row_of_thread();
  return {source + row * row_stride + Share::column_of_thread(), limit - row};
}

/// Calls visit(row, column, source, is_there) for each vector of this thread, and moves the cursor to the next tile.
template <class Share, class Tile, class Visit>
__device__ __forceinline__ void for_own_vectors(TileCursor<typename Tile::Element> &cursor, long long row_stride, Visit visit) {
  const int own_row = Share::row_of_thread(), own_column = Share::column_of_thread();
  const typename Tile::Element *source = cursor.source;
#pragma unroll Share::kUnroll
  for (int row = 0; row < Tile::kRows; row += Share::kRowsPerPass) {
#pragma unroll
    for (int column = 0; column < Tile::kColumns; column += Share::kColumnsPerPass)
      if (Share::has_row(row, own_row))
        visit(row + own_row, column + own_column, source + column, row < cursor.rows);
    source += Share::kRowsPerPass * row_stride;
  }
  cursor.source = Tile::kRows % Share::kRowsPerPass == 0 ? source : cursor.source + Tile::kRows * row_stride;
  cursor.rows -= Tile::kRows;
}

/// Copies the cursor's tile asynchronously: it lands at any time before a cp_async_wait that covers its group.
template <int kThreads, int kVectorBytes, class Tile>
__device__ __forceinline__ void copy_next_tile_async(const Tile &tile, TileCursor<typename Tile::Element> &cursor,
                                                     long long row_stride, ptx::Site site = ptx::Site::here()) {
  for_own_vectors<TileShare<kThreads, kVectorBytes, Tile>, Tile>(
      cursor, row_stride, [&](int row, int column, const typename Tile::Element *from, bool is_there) {
        ptx::cp_async<kVectorBytes>(tile.address(row, column), from, is_there, site);
      });
}

/// Copies the cursor's tile through registers; done when the thread goes on.
template <int kThreads, int kVectorBytes, class Tile>
__device__ __forceinline__ void copy_next_tile(const Tile &tile, TileCursor<typename Tile::Element> &cursor,
                                               long long row_stride, ptx::Site site = ptx::Site::here()) {
  for_own_vectors<TileShare<kThreads, kVectorBytes, Tile>, Tile>(
      cursor, row_stride, [&](int row, int column, const typename Tile::Element *from, bool is_there) {
        if constexpr (kVectorBytes == 2) {
          const unsigned short value = is_there ? ptx::ld_global_u16(from, site) : static_cast<unsigned short>(0);
          ptx::st_shared_u16(tile.address(row, column), value, site);
        } else {
          unsigned words[kVectorBytes / 4] = {};
          if (is_there)
            ptx::ld_global(words, from, site);
          ptx::st_shared(tile.address(row, column), words, site);
        }
      });
}

/// Rows [first_row, first_row + Tile::kRows), those at or beyond `limit` as zeros; asynchronously.
template <int kThreads, int kVectorBytes, class Tile>
__device__ __forceinline__ void copy_tile_async(const Tile &tile, const typename Tile::Element *source,
                                                long long row_stride, int first_row, int limit,
                                                ptx::Site site = ptx::Site::here()) {
  auto cursor = tile_cursor<TileShare<kThreads, kVectorBytes, Tile>>(source, row_stride, first_row, limit);
  copy_next_tile_async<kThreads, kVectorBytes>(tile, cursor, row_stride, site);
}

/// The same through registers; done when the thread goes on.
template <int kThreads, int kVectorBytes, class Tile>
__device__ __forceinline__ void copy_tile(const Tile &tile, const typename Tile::Element *source, long long row_stride,
                                          int first_row, int limit, ptx::Site site = ptx::Site::here()) {
  auto cursor = tile_cursor<TileShare<kThreads, kVectorBytes, Tile>>(source, row_stride, first_row, limit);
  copy_next_tile<kThreads, kVectorBytes>(tile, cursor, row_stride, site);
}

} // namespace fagen::device
