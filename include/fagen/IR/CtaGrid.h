// fagen: which CTAs a launch has.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In textual IR, where it is not one CTA a tile:
//
//   grid persistent
//   grid persistent longest_first kTurnRows, kTurnTiles
//   grid splits 4
//   grid tiles (m in ceil_div(M, 128), n in ceil_div(N, 64))
//
// The last form is of a kernel with parameters of its own: what its tiles are counted by. The last index is the
// fastest.
#pragma once

#include "fagen/IR/Count.h"
#include "fagen/IR/Expr.h"

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace fagen::ir {

/// A number that a tile has: in [0, extent).
struct GridIndex {
  std::string name;
  Expr extent; ///< of sizes and constants
};

/// In which order tickets are drawn, where tiles with most keys come first: the heads at the end take turns.
struct TurnOrder {
  Count rows;                 ///< of K and V of the heads that take turns
  std::optional<Count> tiles; ///< heads of so many tiles all take turns
};

/// How the CTAs of a launch share its tiles.
struct CtaGrid {
  enum Kind : uint8_t {
    Tiles,      ///< a CTA a tile
    Persistent, ///< as many CTAs as are resident: each takes tile after tile
    Splits,     ///< `number` CTAs a tile; 0: as many as fill the GPU
    SplitKeys,  ///< a CTA for each tile and `number` of its keys
    Rows,       ///< a warp a row
    Clusters,   ///< persistent, `number` CTAs a cluster
    KeyTiles    ///< a warp a key tile of each tile of rows, one after the other
  } kind = Tiles;
  unsigned number = 0;
  std::optional<TurnOrder> turns = {}; ///< of persistent CTAs; none: tiles are in the order of their numbers
  std::vector<GridIndex> indices;      ///< what tiles are counted by; none: by attention's heads and rows

  /// Whether several CTAs share a tile.
  bool isSplit() const { return kind == Splits || kind == SplitKeys; }
  /// How many CTAs reach each other's shared memory.
  unsigned ctasOfCluster() const { return kind == Clusters ? number : 1; }
  /// Whether the kind counts something.
  static bool hasNumber(Kind kind) { return kind == Splits || kind == SplitKeys || kind == Clusters; }
};

inline constexpr CtaGrid::Kind kGridKinds[] = {CtaGrid::Tiles,     CtaGrid::Persistent, CtaGrid::Splits,
                                               CtaGrid::SplitKeys, CtaGrid::Rows,       CtaGrid::Clusters,
                                               CtaGrid::KeyTiles};

/// As in textual IR and in the manifest: "split_keys".
llvm::StringRef toString(CtaGrid::Kind kind);

} // namespace fagen::ir
