// fagen: operands of matrix instructions for conformance cases: eleven kinds, from normal values to overflow.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "accumulation.h"
#include "words.h"

namespace fagen::lab {

/// The operands of one instruction in plain order; N is 8 or 16.
struct Tile {
  uint16_t a[16][16], b[16][16]; ///< row, k; k, column
  uint32_t c[16][16];
};

/// Fills a tile of kind `index`, counted round; `half`: accumulators of f16.
void fillTile(Words &random, unsigned index, DType dtype, bool half, Tile &tile);

/// The operands of one instruction on e4m3; N is 8.
struct ByteTile {
  uint8_t a[16][32], b[8][32]; ///< row, k; column, k
  uint32_t c[16][8];
};
void fillBytes(Words &random, unsigned index, ByteTile &tile);

inline constexpr const char *kTileInputs = "tiles of eleven kinds";
inline constexpr const char *kTileBound = "17 * 2^(e - 25) + 1 ulp";

} // namespace fagen::lab
