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
#include <fagen/device/tile/rows.h>
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

  static __device__ __forceinline__ int row_of_thread() { return ptx::recompute(ptx::thread_index() / kAcross); }
  static __device__ __forceinline__ int column_of_thread() {
    return ptx::recompute(ptx::thread_index() % kAcross * kElements);
  }
  /// Whether the pass that begins at row `pass_row` has a row for the thread.
  static __device__ __forceinline__ bool has_row(int pass_row, int row) {
    return Tile::kRows % kRowsPerPass == 0 || pass_row + row < Tile::kRows;
  }
};

/// Where this thread's first vector of the tile lies that begins at `first_row`.
template <class Share, class T>
__device__ __forceinline__ const T *own_source(const T *source, long long row_stride, int first_row) {
  return source + (first_row + Share::row_of_thread()) * row_stride + Share::column_of_thread();
}

/// Whether all vectors of a thread lie below each other in shared memory: the swizzle repeats every 8 rows.
template <class Share, class Tile> __device__ constexpr bool has_one_address() {
  return Share::kAlong == 1 && (Tile::kSwizzle != Swizzle::kXor || Share::kRowsPerPass % 8 == 0);
}

/// Calls visit(target, source, is_there) for each vector of this thread; `own` is its first, and moves to the next
/// tile. There are the first `rows` rows of the tile; with kWhole also a text that compares no row, for whole tiles.
template <class Share, bool kWhole, class Tile, class Visit>
__device__ __forceinline__ void for_own_vectors(const Tile &tile, const typename Tile::Element *&own,
                                                long long row_stride, int rows, Visit visit) {
  const int own_row = Share::row_of_thread(), own_column = Share::column_of_thread();
  const unsigned own_target = tile.address(own_row, own_column);
  const long long step = ptx::recompute(Share::kRowsPerPass * row_stride);
  const typename Tile::Element *source = own;
  auto visit_all = [&](auto is_there) {
#pragma unroll Share::kUnroll
    for (int row = 0; row < Tile::kRows; row += Share::kRowsPerPass) {
#pragma unroll
      for (int column = 0; column < Tile::kColumns; column += Share::kColumnsPerPass)
        if (Share::has_row(row, own_row)) {
          const unsigned target = kWhole && has_one_address<Share, Tile>()
                                      ? own_target + row * Tile::kPanelBytes
                                      : tile.address(row + own_row, column + own_column);
          visit(target, source + column, is_there(row));
        }
      source = ptx::recompute(source + step);
    }
  };
  if (kWhole && rows >= Tile::kRows)
    visit_all([](int) { return true; });
  else
    visit_all([&](int row) { return kWhole ? row < rows - own_row : row + own_row < rows; });
  own = Tile::kRows % Share::kRowsPerPass == 0 ? source : own + Tile::kRows * row_stride;
}

/// One vector through registers, or zeros.
template <int kVectorBytes, class T>
__device__ __forceinline__ void copy_vector(unsigned to, const T *from, bool is_there, ptx::Site site) {
  if constexpr (kVectorBytes == 2) {
    const unsigned short value = is_there ? ptx::ld_global_u16(from, site) : static_cast<unsigned short>(0);
    ptx::st_shared_u16(to, value, site);
  } else {
    unsigned words[kVectorBytes / 4] = {};
    if (is_there)
      ptx::ld_global(words, from, site);
    ptx::st_shared(to, words, site);
  }
}

/// Copies the tile whose vectors begin at `own`, asynchronously: it lands at any time before a cp_async_wait that
/// covers its group. Rows [first_row, first_row + Tile::kRows) of the tensor, those at or beyond `limit` as zeros.
/// `own` moves to the next tile.
template <int kThreads, int kVectorBytes, class Tile>
__device__ __forceinline__ void copy_next_tile_async(const Tile &tile, const typename Tile::Element *&own,
                                                     long long row_stride, int first_row, int limit,
                                                     ptx::Site site = ptx::Site::here()) {
  for_own_vectors<TileShare<kThreads, kVectorBytes, Tile>, /*kWhole=*/true>(
      tile, own, row_stride, limit - first_row,
      [&](unsigned target, const typename Tile::Element *from, bool is_there) {
        ptx::cp_async<kVectorBytes>(target, from, is_there, site);
      });
}

/// The same through registers; done when the thread goes on.
template <int kThreads, int kVectorBytes, class Tile>
__device__ __forceinline__ void copy_next_tile(const Tile &tile, const typename Tile::Element *&own,
                                               long long row_stride, int first_row, int limit,
                                               ptx::Site site = ptx::Site::here()) {
  for_own_vectors<TileShare<kThreads, kVectorBytes, Tile>, /*kWhole=*/false>(
      tile, own, row_stride, limit - first_row,
      [&](unsigned target, const typename Tile::Element *from, bool is_there) {
        copy_vector<kVectorBytes>(target, from, is_there, site);
      });
}

/// A tile by its rows: `source` is row 0 of the tensor.
template <int kThreads, int kVectorBytes, class Tile>
__device__ __forceinline__ void copy_tile_async(const Tile &tile, const typename Tile::Element *source,
                                                long long row_stride, int first_row, int limit,
                                                ptx::Site site = ptx::Site::here()) {
  const auto *own = own_source<TileShare<kThreads, kVectorBytes, Tile>>(source, row_stride, first_row);
  copy_next_tile_async<kThreads, kVectorBytes>(tile, own, row_stride, first_row, limit, site);
}
template <int kThreads, int kVectorBytes, class Tile>
__device__ __forceinline__ void copy_tile(const Tile &tile, const typename Tile::Element *source, long long row_stride,
                                          int first_row, int limit, ptx::Site site = ptx::Site::here()) {
  const auto *own = own_source<TileShare<kThreads, kVectorBytes, Tile>>(source, row_stride, first_row);
  copy_next_tile<kThreads, kVectorBytes>(tile, own, row_stride, first_row, limit, site);
}

/// Calls visit(row, column, source, is_there) for each vector of this thread, each row where `rows` has it.
template <class Share, class Tile, class Visit>
__device__ __forceinline__ void for_own_packed_vectors(const typename Tile::Element *source, const PackedRows &rows,
                                                       int first_row, int limit, Visit visit) {
  const int own_row = Share::row_of_thread(), own_column = Share::column_of_thread();
#pragma unroll Share::kUnroll
  for (int row = 0; row < Tile::kRows; row += Share::kRowsPerPass) {
    const int of_tensor = first_row + row + own_row;
    const typename Tile::Element *from = source + row_offset(rows, of_tensor) + own_column;
#pragma unroll
    for (int column = 0; column < Tile::kColumns; column += Share::kColumnsPerPass)
      if (Share::has_row(row, own_row))
        visit(row + own_row, column + own_column, from + column, of_tensor < limit);
  }
}

/// A tile of packed rows: `source` is row 0 of the first head.
template <int kThreads, int kVectorBytes, class Tile>
__device__ __forceinline__ void copy_packed_tile_async(const Tile &tile, const typename Tile::Element *source,
                                                       const PackedRows &rows, int first_row, int limit,
                                                       ptx::Site site = ptx::Site::here()) {
  for_own_packed_vectors<TileShare<kThreads, kVectorBytes, Tile>, Tile>(
      source, rows, first_row, limit, [&](int row, int column, const typename Tile::Element *from, bool is_there) {
        ptx::cp_async<kVectorBytes>(tile.address(row, column), from, is_there, site);
      });
}
template <int kThreads, int kVectorBytes, class Tile>
__device__ __forceinline__ void copy_packed_tile(const Tile &tile, const typename Tile::Element *source,
                                                 const PackedRows &rows, int first_row, int limit,
                                                 ptx::Site site = ptx::Site::here()) {
  for_own_packed_vectors<TileShare<kThreads, kVectorBytes, Tile>, Tile>(
      source, rows, first_row, limit, [&](int row, int column, const typename Tile::Element *from, bool is_there) {
        copy_vector<kVectorBytes>(tile.address(row, column), from, is_there, site);
      });
}

} // namespace fagen::device
