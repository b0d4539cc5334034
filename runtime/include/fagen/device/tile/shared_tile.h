// fagen: a tile in shared memory, and the addresses by which ops reach it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/shared.h>
#include <fagen/device/tile/layout.h>

namespace fagen::device {

/// kTileRows x kTileColumns elements of T, laid out as layout.h says. A ring is an array of these.
template <class T, int kTileRows, int kTileColumns, Swizzle kTileSwizzle> struct SharedTile {
  using Element = T;
  static constexpr int kRows = kTileRows;
  static constexpr int kColumns = kTileColumns;
  static constexpr int kPanelBytes = static_cast<int>(panel_row_bytes(kTileSwizzle, kColumns, sizeof(T)));
  static constexpr Swizzle kSwizzle = kTileSwizzle;
  static_assert(kSwizzle != Swizzle::kXor || kColumns * sizeof(T) % 32 == 0,
                "a swizzled row is a multiple of 32 bytes");

  alignas(128) unsigned char bytes[tile_bytes(kSwizzle, kRows, kColumns, sizeof(T))];

  __device__ __forceinline__ unsigned base() const { return ptx::shared_address(bytes); }
  /// Address of element (row, column).
  __device__ __forceinline__ unsigned address(int row, int column) const {
    return base() + tile_offset(kSwizzle, kRows, kColumns, sizeof(T), row, column);
  }
};

/// Address of the element `rows` rows below and `columns` columns right of the one at `corner`. `rows` is a multiple
/// of 8, `columns` of 16, and `corner` lies in the first 16 columns of its row: then the row's permutation stays, and
/// only the bits above the chunk pair change, so an unrolled loop needs one xor a column and immediate offsets.
template <class Tile> __device__ __forceinline__ unsigned slice_address(unsigned corner, int rows, int columns) {
  const int byte = columns * static_cast<int>(sizeof(typename Tile::Element));
  if constexpr (Tile::kSwizzle != Swizzle::kXor)
    return corner + byte + rows * Tile::kPanelBytes;
  else
    return (corner ^ (byte % Tile::kPanelBytes)) + byte / Tile::kPanelBytes * (Tile::kRows * Tile::kPanelBytes) +
           rows * Tile::kPanelBytes;
}

} // namespace fagen::device
