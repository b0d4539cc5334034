// fagen: what products of warp groups read by their descriptors is the tile, each element in its place, and no byte
// more. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/emulator/prelude.h>

#include <fagen/device/tile/operand.h>
#include <fagen/device/types.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

using namespace fagen::device;

namespace {

/// What operand.h says of a tile of 16-bit elements.
struct TileFacts {
  unsigned rows, columns, bytes;
  unsigned long long kMajor, mnMajor; ///< descriptors of the first slice, the tile at 0
  int (*kStep)(int), (*mnStep)(int);
  int (*kReach)(int);
  int mnReach;
};

template <int kRows, int kColumns> TileFacts factsOf() {
  using Tile = SharedTile<f16, kRows, kColumns, Swizzle::kXor>;
  return {kRows,
          kColumns,
          unsigned(operand_bytes<Tile>()),
          k_major_at<Tile>(0).bits,
          mn_major_at<Tile>(0).bits,
          k_major_step<Tile>,
          mn_major_step<Tile>,
          k_major_reach<Tile>,
          mn_major_reach<Tile>()};
}

/// Where hardware finds element (k, mn) of one instruction's operand: PTX ISA, matrix descriptor.
struct Descriptor {
  unsigned start, leading, stride, rowBytes;
  bool isMnMajor;

  Descriptor(unsigned long long bits, int step, bool isMnMajor)
      : start((unsigned(bits & 0x3fff) << 4) + unsigned(step)), leading(unsigned(bits >> 16 & 0x3fff) << 4),
        stride(unsigned(bits >> 32 & 0x3fff) << 4), rowBytes(256u >> (bits >> 62)), isMnMajor(isMnMajor) {}

  unsigned addressOf(unsigned k, unsigned mn) const {
    const unsigned across = isMnMajor ? k : mn, along = 2 * (isMnMajor ? mn : k);
    const unsigned address =
        start + across / 8 * stride + across % 8 * rowBytes + along / rowBytes * leading + along % rowBytes;
    return address ^ (address >> 7 & (rowBytes / 16 - 1)) << 4;
  }
};

/// Rows of the tile in all slices of 16 columns: `count` of them.
void expectReadsRows(const TileFacts &tile, unsigned count) {
  unsigned end = 0;
  for (unsigned slice = 0; slice < tile.columns / 16; ++slice) {
    const Descriptor operand(tile.kMajor, tile.kStep(int(slice)), false);
    for (unsigned row = 0; row < count; ++row)
      for (unsigned k = 0; k < 16; ++k) {
        const unsigned address = operand.addressOf(k, row);
        ASSERT_EQ(address, tile_offset(Swizzle::kXor, tile.rows, tile.columns, 2, row, 16 * slice + k))
            << tile.rows << " x " << tile.columns << ": row " << row << ", slice " << slice;
        end = std::max(end, address + 2);
      }
  }
  EXPECT_EQ(tile.kReach(int(count)), int(end)) << tile.rows << " x " << tile.columns << ", " << count << " rows";
  EXPECT_LE(end, tile.bytes);
}

/// All columns of the tile in all slices of 16 rows.
void expectReadsColumns(const TileFacts &tile) {
  unsigned end = 0;
  for (unsigned slice = 0; slice < tile.rows / 16; ++slice) {
    const Descriptor operand(tile.mnMajor, tile.mnStep(int(slice)), true);
    for (unsigned column = 0; column < tile.columns; ++column)
      for (unsigned k = 0; k < 16; ++k) {
        const unsigned address = operand.addressOf(k, column);
        ASSERT_EQ(address, tile_offset(Swizzle::kXor, tile.rows, tile.columns, 2, 16 * slice + k, column))
            << tile.rows << " x " << tile.columns << ": column " << column << ", slice " << slice;
        end = std::max(end, address + 2);
      }
  }
  EXPECT_EQ(tile.mnReach, int(end)) << tile.rows << " x " << tile.columns;
  EXPECT_EQ(end, tile.bytes);
}

template <int kColumns, int... kEighths>
void addTilesOf(std::vector<TileFacts> &tiles, std::integer_sequence<int, kEighths...>) {
  (tiles.push_back(factsOf<8 * (kEighths + 1), kColumns>()), ...);
}

/// Every N that an instruction has as rows, 8 to 256, by every head dim that a swizzled tile has, 16 to 256: all that
/// specs admit, multiples of 16 by multiples of 32, is among them.
template <int... kSixteenths> std::vector<TileFacts> allTiles(std::integer_sequence<int, kSixteenths...>) {
  std::vector<TileFacts> tiles;
  (addTilesOf<16 * (kSixteenths + 1)>(tiles, std::make_integer_sequence<int, 32>()), ...);
  return tiles;
}

class Operand : public testing::Test {
protected:
  const std::vector<TileFacts> tiles = allTiles(std::make_integer_sequence<int, 16>());
};

TEST_F(Operand, ofRowsIsTheTile) {
  for (const TileFacts &tile : tiles)
    for (unsigned count : {8u, tile.rows / 16 * 8, tile.rows})
      if (count != 0)
        expectReadsRows(tile, count);
}

TEST_F(Operand, ofColumnsIsTheTile) {
  for (const TileFacts &tile : tiles)
    if (tile.rows % 16 == 0)
      expectReadsColumns(tile);
}

/// What static_asserts of ops/wgmma.h refuse: N beyond the tile's rows, and rows that are no whole slices.
TEST_F(Operand, reachesBeyondTilesThatAreTooSmall) {
  for (const TileFacts &tile : tiles) {
    EXPECT_GT(tile.kReach(int(tile.rows) + 8), int(tile.bytes));
    EXPECT_EQ(tile.mnReach > int(tile.bytes), tile.rows % 16 != 0);
  }
}

} // namespace
