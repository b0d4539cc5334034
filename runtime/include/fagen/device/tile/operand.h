// fagen: swizzled shared tiles as operands of warp-group products.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A tile is what bulk tensor copies leave: panels of 64 or 32 columns (128 or 64 bytes a row), one after the other,
// the chunks of a row permuted by its number. One and the same tile serves as K-major operand (Q, K, P: its columns are
// summed over) and as MN-major one (V: its rows are summed over); only the descriptor differs. It begins at a multiple
// of 1024 bytes. A product takes 32 bytes of what is summed over at a time, 16 columns of 16 bits or 32 of 8: slice i.
// Bytes are K-major only.
#pragma once

#include <fagen/device/ptx/matrix_descriptor.h>
#include <fagen/device/tile/shared_tile.h>

namespace fagen::device {

/// Rows of a group's left operand.
constexpr int kGroupRows = 64;

template <class Tile> constexpr BoxSwizzle box_swizzle() {
  static_assert(Tile::kSwizzle == Swizzle::kXor, "operands of warp-group products lie in swizzled tiles");
  return Tile::kPanelBytes == 128 ? BoxSwizzle::k128B : Tile::kPanelBytes == 64 ? BoxSwizzle::k64B : BoxSwizzle::k32B;
}

template <class Tile> constexpr int panel_columns() {
  return Tile::kPanelBytes / static_cast<int>(sizeof(typename Tile::Element));
}

/// Bytes of eight rows of a panel.
template <class Tile> constexpr int core_bytes() { return 8 * Tile::kPanelBytes; }

/// Columns of one slice.
template <class Tile> constexpr int slice_columns() { return 32 / static_cast<int>(sizeof(typename Tile::Element)); }

/// As K-major operand: the tile lies at `address`; its columns are summed over, the first slice of them here.
template <class Tile> __device__ __forceinline__ constexpr ptx::MatrixDescriptor k_major_at(unsigned address) {
  return ptx::matrix_descriptor(address, 16, core_bytes<Tile>(), box_swizzle<Tile>());
}
/// Rows [row, ...) of the tile, `row` a multiple of 8.
template <class Tile> __device__ __forceinline__ ptx::MatrixDescriptor k_major_operand(const Tile &tile, int row = 0) {
  return k_major_at<Tile>(tile.base() + row * Tile::kPanelBytes);
}
/// From the first slice of columns to another.
template <class Tile> constexpr int k_major_step(int slice) {
  const int column = slice_columns<Tile>() * slice;
  return column / panel_columns<Tile>() * (Tile::kRows * Tile::kPanelBytes) +
         column % panel_columns<Tile>() * static_cast<int>(sizeof(typename Tile::Element));
}
/// Bytes from the tile's first to the last that products of all its slices read, `rows` rows each. The permutation
/// leaves a chunk in its row, and the last slice has the last chunks of its panel.
template <class Tile> constexpr int k_major_reach(int rows) {
  return k_major_step<Tile>(Tile::kColumns / slice_columns<Tile>() - 1) + (rows - 1) * Tile::kPanelBytes + 32;
}

/// As MN-major operand: all columns of the tile, of which N counts; its rows are summed over, the first 16 here.
template <class Tile> __device__ __forceinline__ constexpr ptx::MatrixDescriptor mn_major_at(unsigned address) {
  return ptx::matrix_descriptor(address, Tile::kRows * Tile::kPanelBytes, core_bytes<Tile>(), box_swizzle<Tile>());
}
/// The 16 rows from `row`, a multiple of 16, on.
template <class Tile> __device__ __forceinline__ ptx::MatrixDescriptor mn_major_operand(const Tile &tile, int row = 0) {
  return mn_major_at<Tile>(tile.base() + row * Tile::kPanelBytes);
}
/// Columns [column, ...) of the tile, `column` a multiple of those of a panel.
template <class Tile> __device__ __forceinline__ ptx::MatrixDescriptor mn_major_columns(const Tile &tile, int column) {
  return mn_major_at<Tile>(tile.base() + column / panel_columns<Tile>() * (Tile::kRows * Tile::kPanelBytes));
}
/// From the first 16 rows to those from 16 * slice on.
template <class Tile> constexpr int mn_major_step(int slice) { return 16 * slice * Tile::kPanelBytes; }
/// As k_major_reach. Rows that are no multiple of 16 would end in a slice that reaches over them.
template <class Tile> constexpr int mn_major_reach() {
  const int panels = Tile::kColumns / panel_columns<Tile>();
  return mn_major_step<Tile>((Tile::kRows + 15) / 16 - 1) + (panels - 1) * (Tile::kRows * Tile::kPanelBytes) +
         2 * core_bytes<Tile>();
}

/// Bytes that the tile has.
template <class Tile> constexpr int operand_bytes() {
  return static_cast<int>(tile_bytes(Tile::kSwizzle, Tile::kRows, Tile::kColumns, sizeof(typename Tile::Element)));
}

} // namespace fagen::device
