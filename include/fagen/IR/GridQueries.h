// fagen: what a kernel's tiles are counted by, attention's like those of others.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"

#include "llvm/ADT/StringSet.h"

namespace fagen::ir {

/// The indices of the grid, the fastest last: those that it declares, else attention's: batch, head (of K and V where
/// heads are packed) and the tile of query rows, which needs the constant kTileRows.
std::vector<GridIndex> indicesOf(const Kernel &kernel);

/// How many tiles there are: the product of all extents; 1 without indices.
Expr tilesOf(const Kernel &kernel);

/// The value that tells tiles of a run apart: the fastest index, of attention the tile's first row.
llvm::StringRef fastestOf(const Kernel &kernel);

/// The names, and those of the lets that follow from them.
llvm::StringSet<> withFollowers(const Kernel &kernel, llvm::StringSet<> names);

/// Whether a thread draws tickets for tiles.
bool drawsTiles(const Kernel &kernel);

} // namespace fagen::ir
