// fagen: the addresses by which unrolled loops walk a tile are those of the layout.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/emulator/prelude.h>

#include <fagen/device/tile/integer.h>
#include <fagen/device/tile/shared_tile.h>
#include <fagen/device/types.h>

#include <gtest/gtest.h>

using namespace fagen::device;

namespace {

/// From every corner that slice_address allows, by every step that it allows.
template <class Tile> void expectSlicesLikeTheLayout() {
  constexpr unsigned kBytes = sizeof(typename Tile::Element);
  auto offset = [](int row, int column) {
    return tile_offset(Tile::kSwizzle, Tile::kRows, Tile::kColumns, kBytes, row, column);
  };
  for (unsigned base : {0u, 128u, 8192u + 3 * 128u})
    for (int row = 0; row < Tile::kRows; ++row)
      for (int column = 0; column < 16; column += 8)
        for (int rows = 0; row + rows < Tile::kRows; rows += 8)
          for (int columns = 0; column + columns < Tile::kColumns; columns += 16)
            ASSERT_EQ(slice_address<Tile>(base + offset(row, column), rows, columns),
                      base + offset(row + rows, column + columns))
                << Tile::kRows << " x " << Tile::kColumns << " from " << row << ", " << column << " by " << rows << ", "
                << columns;
}

template <int kRows, int... kSixteenths> void expectForEveryHeadDim(std::integer_sequence<int, kSixteenths...>) {
  (expectSlicesLikeTheLayout<SharedTile<f16, kRows, 16 * (kSixteenths + 1), Swizzle::kXor>>(), ...);
  (expectSlicesLikeTheLayout<SharedTile<bf16, kRows, 16 * (kSixteenths + 1), Swizzle::kNone>>(), ...);
  (expectSlicesLikeTheLayout<SharedTile<f16, kRows, 16 * (kSixteenths + 1), Swizzle::kPad>>(), ...);
}

TEST(SharedTile, slicesAreThoseOfTheLayout) {
  expectForEveryHeadDim<16>(std::make_integer_sequence<int, 16>());
  expectForEveryHeadDim<48>(std::make_integer_sequence<int, 16>());
  expectForEveryHeadDim<64>(std::make_integer_sequence<int, 16>());
}

TEST(SharedTile, isAsLargeAsItsElements) {
  EXPECT_EQ(sizeof(SharedTile<f16, 64, 96, Swizzle::kXor>), 64u * 96 * 2);
  EXPECT_EQ(sizeof(SharedTile<float, 64, 72, Swizzle::kNone>), 64u * 72 * 4);
  EXPECT_EQ(sizeof(SharedTile<float, 16, 64, Swizzle::kPad>), 16u * (64 + 8) * 4);
  EXPECT_EQ(alignof(SharedTile<f16, 16, 16, Swizzle::kXor>), 128u);
}

TEST(Integer, boundsOfLoops) {
  EXPECT_EQ(min(-1, 2), -1);
  EXPECT_EQ(max(-1, 2), 2);
  EXPECT_EQ(floor_div(127, 64), 1);
  EXPECT_EQ(floor_div(128, 64), 2);
  EXPECT_EQ(ceil_div(0, 64), 0);
  EXPECT_EQ(ceil_div(128, 64), 2);
  EXPECT_EQ(ceil_div(129, 64), 3);
}

} // namespace
