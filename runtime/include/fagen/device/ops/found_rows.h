// fagen: tiles of matrices whose rows lie where a table in memory says, as those of a cache in pages.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A row's place takes a read and a division, and lanes next to each other would all do the same for their vectors of
// one row. So each lane of a warp finds one row, and shuffles tell the others.
#pragma once

#include <fagen/device/ops/matrix.h>
#include <fagen/device/ptx/shuffle.h>

namespace fagen::device {

/// The address that lane `from` has.
template <class T> __device__ __forceinline__ const T *address_of_lane(const T *address, int from, ptx::Site site) {
  const auto bits = reinterpret_cast<unsigned long long>(address);
  const int mask = ptx::lane_index() ^ from;
  const unsigned low = ptx::shuffle_xor(static_cast<unsigned>(bits), mask, site);
  const unsigned high = ptx::shuffle_xor(static_cast<unsigned>(bits >> 32), mask, site);
  return reinterpret_cast<const T *>(static_cast<unsigned long long>(high) << 32 | low);
}

/// As for_own_matrix_vectors, where to find a row takes long, as it does by a table in memory: of the rows whose
/// vectors are a warp's, each lane finds one, and tells the others.
template <class Share, class Tile, class RowOf, class Visit>
__device__ __forceinline__ void for_own_found_vectors(const Tile &tile, const RowOf &row_of, int first_row, int rows,
                                                      int first_column, int columns, ptx::Site site, Visit visit) {
  static_assert(32 % Share::kAcross == 0, "a row has lanes of one warp");
  constexpr int kOfWarp = 32 / Share::kAcross; // rows of a warp in a pass
  const int lane = ptx::lane_index(), own_row = Share::row_of_thread(), own_column = Share::column_of_thread();
  const int of_lane = own_row - lane / Share::kAcross + lane % kOfWarp;
  const bool is_whole = first_column + Tile::kColumns <= columns; // most compilations know, and have no text for parts
#pragma unroll
  for (int first = 0; first < Share::kPasses; first += Share::kAcross) {
    const int sought = (first + lane / kOfWarp) * Share::kRowsPerPass + of_lane;
    const bool is_sought = sought < Tile::kRows && first_row + sought < rows;
    const typename Tile::Element *found = row_of(is_sought ? first_row + sought : 0) + first_column;
#pragma unroll
    for (int pass = first; pass < Share::kPasses && pass < first + Share::kAcross; ++pass) {
      const int row = pass * Share::kRowsPerPass;
      const typename Tile::Element *from =
          address_of_lane(found, (pass - first) * kOfWarp + lane / Share::kAcross, site) + own_column;
      const bool is_there = first_row + row + own_row < rows;
#pragma unroll
      for (int column = 0; column < Tile::kColumns; column += Share::kColumnsPerPass)
        if (Share::has_row(row, own_row))
          visit(tile.address(row + own_row, column + own_column), from + column,
                !is_there  ? 0
                : is_whole ? Share::kElements
                           : columns - first_column - own_column - column);
    }
  }
}

/// As copy_matrix_async, where a table in memory says where rows lie.
template <int kThreads, int kVectorBytes, class Tile, class RowOf>
__device__ __forceinline__ void copy_found_rows_async(const Tile &tile, const RowOf &row_of, int first_row, int rows,
                                                      int first_column, int columns,
                                                      ptx::Site site = ptx::Site::here()) {
  using Share = TileShare<kThreads, kVectorBytes, Tile>;
  for_own_found_vectors<Share>(tile, row_of, first_row, rows, first_column, columns, site,
                               [&](unsigned target, const typename Tile::Element *from, int count) {
                                 copy_vector_async<Share, kVectorBytes>(target, from, count, site);
                               });
}

} // namespace fagen::device
