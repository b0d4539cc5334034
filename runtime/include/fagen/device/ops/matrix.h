// fagen: tiles of matrices in global memory that a program's own parameters name.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where rows lie is the matrix' own business: row_of(r) is the address of element (r, 0), whatever leads there
// (strides, packed heads, offsets read from memory). Elements of a row lie side by side. Rows from `rows` on and
// columns from `columns` on are not the matrix': they are loaded as zeros and not stored.
#pragma once

#include <fagen/device/ops/copy.h>
#include <fagen/device/ops/pipeline.h>
#include <fagen/device/ops/store.h>

namespace fagen::device {

/// One vector of a row, of whose elements the first `count` are the matrix'.
template <int kVectorBytes, class T>
__device__ __forceinline__ void copy_part(unsigned target, const T *from, int count, ptx::Site site) {
  if constexpr (sizeof(T) == 2) {
    for (int i = 0; i < kVectorBytes / 2; ++i)
      ptx::st_shared_u16(target + 2 * i, i < count ? ptx::ld_global_u16(from + i, site) : 0, site);
  } else {
    constexpr int kEach = 4 / static_cast<int>(sizeof(T)); // elements of a word
    for (int i = 0; i < kVectorBytes / 4; ++i) {
      unsigned word[1] = {};
      for (int n = 0; n < kEach; ++n)
        if (kEach * i + n < count)
          word[0] |= (kEach == 1 ? ptx::ld_global_u32(from + i, site) : ptx::ld_global_u8(from + kEach * i + n, site))
                     << 8 * n;
      ptx::st_shared(target + 4 * i, word, site);
    }
  }
}

/// Calls visit(target, source, count) for each vector of this thread: `count` elements from `source` on are the
/// matrix', at most a vector.
template <class Share, class Tile, class RowOf, class Visit>
__device__ __forceinline__ void for_own_matrix_vectors(const Tile &tile, const RowOf &row_of, int first_row, int rows,
                                                       int first_column, int columns, Visit visit) {
  const int own_row = Share::row_of_thread(), own_column = Share::column_of_thread();
#pragma unroll Share::kUnroll
  for (int row = 0; row < Tile::kRows; row += Share::kRowsPerPass) {
    const int of_matrix = first_row + row + own_row;
    const bool is_there = of_matrix < rows;
    const typename Tile::Element *from = row_of(is_there ? of_matrix : 0) + first_column + own_column;
#pragma unroll
    for (int column = 0; column < Tile::kColumns; column += Share::kColumnsPerPass)
      if (Share::has_row(row, own_row))
        visit(tile.address(row + own_row, column + own_column), from + column,
              is_there ? columns - first_column - own_column - column : 0);
  }
}

/// Copies a vector, asynchronously where all of its elements are the matrix' or none is; other vectors are there at
/// once.
template <class Share, int kVectorBytes, class T>
__device__ __forceinline__ void copy_vector_async(unsigned target, const T *from, int count, ptx::Site site) {
  if (count >= Share::kElements || count <= 0)
    ptx::cp_async<kVectorBytes>(target, from, count > 0, site);
  else
    copy_part<kVectorBytes>(target, from, count, site);
}

/// Copies a tile, asynchronously: it lands at any time before a cp_async_wait that covers its group. Addresses of rows
/// and first_column are multiples of kVectorBytes.
template <int kThreads, int kVectorBytes, class Tile, class RowOf>
__device__ __forceinline__ void copy_matrix_async(const Tile &tile, const RowOf &row_of, int first_row, int rows,
                                                  int first_column, int columns, ptx::Site site = ptx::Site::here()) {
  using Share = TileShare<kThreads, kVectorBytes, Tile>;
  for_own_matrix_vectors<Share>(tile, row_of, first_row, rows, first_column, columns,
                                [&](unsigned target, const typename Tile::Element *from, int count) {
                                  copy_vector_async<Share, kVectorBytes>(target, from, count, site);
                                });
}

/// Clears the rows of a tile that is_kept(q) does not keep, where q counts from first_row on. By kThreads threads from
/// kFirstThread on, as they would copy the tile.
template <int kFirstThread, int kThreads, int kVectorBytes, class Tile, class IsKept>
__device__ __forceinline__ void clear_rows(const Tile &tile, int first_row, const IsKept &is_kept,
                                           ptx::Site site = ptx::Site::here()) {
  using Share = TileShare<kThreads, kVectorBytes, Tile>;
  const int thread = ptx::thread_index() - kFirstThread;
  const int own_row = thread / Share::kAcross, own_column = thread % Share::kAcross * Share::kElements;
  const unsigned zeros[kVectorBytes / 4] = {};
  for (int row = own_row; row < Tile::kRows; row += Share::kRowsPerPass)
    if (!is_kept(first_row + row))
      for (int column = own_column; column < Tile::kColumns; column += Share::kColumnsPerPass)
        ptx::st_shared(tile.address(row, column), zeros, site);
}

/// Copies a tile through registers; done when the thread goes on.
template <int kThreads, int kVectorBytes, class Tile, class RowOf>
__device__ __forceinline__ void copy_matrix(const Tile &tile, const RowOf &row_of, int first_row, int rows,
                                            int first_column, int columns, ptx::Site site = ptx::Site::here()) {
  using Share = TileShare<kThreads, kVectorBytes, Tile>;
  for_own_matrix_vectors<Share>(tile, row_of, first_row, rows, first_column, columns,
                                [&](unsigned target, const typename Tile::Element *from, int count) {
                                  if (count >= Share::kElements || count <= 0)
                                    copy_vector<kVectorBytes>(target, from, count > 0, site);
                                  else
                                    copy_part<kVectorBytes>(target, from, count, site);
                                });
}

/// Two neighbouring elements, or the first of them.
template <int kVectorBytes, class T>
__device__ __forceinline__ void store_part(T *target, float low, float high, int count, ptx::Site site) {
  if (count >= 2)
    store_pair<kVectorBytes>(target, low, high, site);
  else if (count == 1)
    ptx::st_global_u16(target, ptx::round_to<T>(low).bits, site);
}
template <int kVectorBytes>
__device__ __forceinline__ void store_part(float *target, float low, float high, int count, ptx::Site site) {
  const float pair[2] = {low, high};
  if (kVectorBytes >= 8 && count >= 2)
    return ptx::st_global_f32(target, pair, site);
  if (count >= 1)
    ptx::st_global_f32(target, low, site);
  if (count >= 2)
    ptx::st_global_f32(target + 1, high, site);
}

/// A warp's accumulator, rounded once to the type of the matrix; its first element is (first_row, first_column). Of 16
/// bit elements rows begin at multiples of min(kVectorBytes, 4) bytes, of f32 of min(kVectorBytes, 8).
template <int kVectorBytes, class RowOf, int kRows, int kColumns>
__device__ __forceinline__ void store_matrix(const RowOf &row_of, const Accumulator<kRows, kColumns> &accumulator,
                                             int first_row, int rows, int first_column, int columns,
                                             ptx::Site site = ptx::Site::here()) {
  const int lane = ptx::lane_index(), own_column = first_column + lane % 4 * 2;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + 16 * slab + 8 * half + lane / 4;
      if (row >= rows)
        continue;
      auto *const target = row_of(row) + own_column;
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile)
        store_part<kVectorBytes>(target + 8 * tile, accumulator.value[slab][tile][2 * half],
                                 accumulator.value[slab][tile][2 * half + 1], columns - own_column - 8 * tile, site);
    }
}

/// The log-sum-exp of each row of a warp, whose first row is first_row: m times `scale` and the logarithm of l.
template <class RowOf, int kRows>
__device__ __forceinline__ void store_lse(const RowOf &row_of, const RowValues<kRows> &m, const RowValues<kRows> &l,
                                          float scale, int first_row, int rows, ptx::Site site = ptx::Site::here()) {
  if (ptx::lane_index() % 4 != 0)
    return;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = first_row + 16 * slab + 8 * half + ptx::lane_index() / 4;
      if (row < rows)
        ptx::st_global_f32(row_of(row), log_sum_exp(m.value[slab][half], l.value[slab][half], scale), site);
    }
}

/// A tile by bulk copies, a box for each of its panels. `at` is the tensor's element that the tile begins with,
/// the fastest dimension first.
template <class Tile, int kRank, int kSlots>
__device__ __forceinline__ void
copy_boxes(Tile &tile, const TensorMap &map, const int (&at)[kRank], const Mbarriers<kSlots> &barriers, int position,
           ptx::CacheHint hint = ptx::CacheHint::kNormal, ptx::Site site = ptx::Site::here()) {
  int corner[kRank];
  for (int i = 0; i < kRank; ++i)
    corner[i] = at[i];
#pragma unroll
  for (int panel = 0; panel < Tile::kColumns / panel_columns<Tile>(); ++panel) {
    corner[0] = at[0] + panel * panel_columns<Tile>();
    ptx::tma_load(tile.base() + panel * Tile::kRows * Tile::kPanelBytes, map, corner, barriers.address(position), hint,
                  site);
  }
}

/// The same by one box, where panels are a dimension of the map, after that of rows.
template <class Tile, int kRank, int kSlots>
__device__ __forceinline__ void
copy_box(Tile &tile, const TensorMap &map, const int (&at)[kRank], const Mbarriers<kSlots> &barriers, int position,
         ptx::CacheHint hint = ptx::CacheHint::kNormal, ptx::Site site = ptx::Site::here()) {
  ptx::tma_load(tile.base(), map, at, barriers.address(position), hint, site);
}

/// Where a box begins, the fastest dimension first.
template <int kRank> struct BoxCorner {
  int at[kRank];
};

/// A tile whose rows from first_row on lie in pages, all kPageRows rows of the map's dimension kRowDimension: a box for
/// each page and panel. corner_of(r) is where the page that begins with row r does. From `rows` on there are none:
/// their boxes lie outside of the tensor, and become zeros.
template <int kPageRows, int kRowDimension, class Tile, class CornerOf, int kSlots>
__device__ __forceinline__ void copy_pages(Tile &tile, const TensorMap &map, int first_row, int rows,
                                           const CornerOf &corner_of, const Mbarriers<kSlots> &barriers, int position,
                                           ptx::CacheHint hint = ptx::CacheHint::kNormal,
                                           ptx::Site site = ptx::Site::here()) {
  using Corner = decltype(corner_of(0));
  constexpr int kPages = Tile::kRows / kPageRows;
  static_assert(kPages * kPageRows == Tile::kRows && kPageRows % 8 == 0,
                "pages are whole groups of the swizzle's 8 rows");
  Corner corners[kPages];
#pragma unroll
  for (int page = 0; page < kPages; ++page) {
    const int row = first_row + page * kPageRows;
    if (row < rows) {
      corners[page] = corner_of(row);
    } else {
      corners[page] = Corner{};
      corners[page].at[kRowDimension] = kPageRows;
    }
  }
#pragma unroll
  for (int page = 0; page < kPages; ++page)
#pragma unroll
    for (int panel = 0; panel < Tile::kColumns / panel_columns<Tile>(); ++panel) {
      Corner corner = corners[page];
      corner.at[0] += panel * panel_columns<Tile>();
      ptx::tma_load(tile.base() + (panel * Tile::kRows + page * kPageRows) * Tile::kPanelBytes, map, corner.at,
                    barriers.address(position), hint, site);
    }
}

/// This CTA's share of the rows of such a tile, to the same place in all kCtas CTAs of its cluster: together they bring
/// the tile. Rows of the map's boxes are those of a share, and follow each other along dimension kRowDimension.
template <int kCtas, int kRowDimension, class Tile, int kRank, int kSlots>
__device__ __forceinline__ void copy_share_of_boxes(Tile &tile, const TensorMap &map, const int (&at)[kRank],
                                                    const Mbarriers<kSlots> &barriers, int position,
                                                    ptx::Site site = ptx::Site::here()) {
  constexpr int kRows = Tile::kRows / kCtas;
  constexpr unsigned short kAll = (1 << kCtas) - 1;
  static_assert(kRows * kCtas == Tile::kRows && kRows % 8 == 0, "a share is whole groups of the swizzle's 8 rows");
  const int first = static_cast<int>(ptx::cluster_rank()) * kRows;
  int corner[kRank];
  for (int i = 0; i < kRank; ++i)
    corner[i] = at[i];
  corner[kRowDimension] += first;
#pragma unroll
  for (int panel = 0; panel < Tile::kColumns / panel_columns<Tile>(); ++panel) {
    corner[0] = at[0] + panel * panel_columns<Tile>();
    ptx::tma_load_multicast(tile.base() + (panel * Tile::kRows + first) * Tile::kPanelBytes, map, corner,
                            barriers.address(position), kAll, ptx::CacheHint::kNormal, site);
  }
}

/// Rows of the tile from tile_row on to the tensor, by one thread, a box for each panel. `at` is where the tile's first
/// element goes; its rows follow each other along dimension kRowDimension.
template <int kRowDimension, class Tile, int kRank>
__device__ __forceinline__ void store_boxes(const Tile &tile, int tile_row, const TensorMap &map,
                                            const int (&at)[kRank], ptx::Site site = ptx::Site::here()) {
  int corner[kRank];
  for (int i = 0; i < kRank; ++i)
    corner[i] = at[i];
  corner[kRowDimension] += tile_row;
#pragma unroll
  for (int panel = 0; panel < Tile::kColumns / panel_columns<Tile>(); ++panel) {
    corner[0] = at[0] + panel * panel_columns<Tile>();
    ptx::tma_store(map, corner, tile.base() + (panel * Tile::kRows + tile_row) * Tile::kPanelBytes, site);
  }
}

} // namespace fagen::device
