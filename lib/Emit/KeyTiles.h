// fagen: how a kernel knows which key tiles its rows see.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// By tiers, each of which costs more than the one before:
//
//   T0  lets: conditions that bound keys, by lengths, params and the rows of the tile
//   T1  each tile is judged by the intervals of its rows and keys; reads that ascend count by their ends, and of a
//       tensor of which a tile has few elements, as of a map of blocks, these are read
//   T2  the same by a launch before, which also reads the elements along a tile's rows and along its keys
//   T3  that launch evaluates the mask for each row and key of the tile
//
// The launch of T2 and T3 leaves a number for each tile, by which the kernel judges them as in T1. A kernel has it
// where a condition of its mask needs T2 or T3; it then classifies tiles by the whole mask. Conditions that bound no
// keys and read nothing are judged by it only there: alone they are visited and masked.
#pragma once

#include "fagen/Emit/Plan.h"

namespace fagen {

KeyTilesPlan planKeyTiles(const ir::Kernel &kernel);

/// Lines of --emit=plan.
std::string toText(const KeyTilesPlan &plan);

} // namespace fagen
