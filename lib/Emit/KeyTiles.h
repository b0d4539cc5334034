// fagen: how a kernel knows which key tiles its rows see.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By tiers, each of which costs more than the one before:
//
//   T0  lets: conditions that bound keys, by lengths, params and the rows of the tile
//   T1  each tile is judged by the intervals of its rows and keys; reads that ascend count by their ends, and of a
//   tensor
//       of which a tile has few elements, as of a map of blocks, these are read
//   T2  the same, by summaries of tiles of what is read along the rows or the keys
//   T3  a map of tiles, for what is read by row and key at once
//
// Kernels are of tier T0, and of T1 where a condition needs it. What keeps a form from both is named, with the tier
// that could judge it.
#pragma once

#include "fagen/Emit/Plan.h"

namespace fagen {

KeyTilesPlan planKeyTiles(const ir::Kernel &kernel);

/// Lines of --emit=plan.
std::string toText(const KeyTilesPlan &plan);

} // namespace fagen
