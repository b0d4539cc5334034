// fagen: which CTAs a launch has, and which tiles each of them works on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A grid is what tiles are counted by, the last index the fastest, and how they go to CTAs. In textual IR, where it is
// not one CTA for each of attention's tiles:
//
//   grid tiles (m in ceil_div(M, 128), n in ceil_div(N, 64))
//   grid persistent drawn (b in B, h in H, t in ceil_div(S, 128)) longest_first kTurnRows of S, 32
//   grid persistent clusters 2 (n in ceil_div(N, 64), m in ceil_div(M, 256) * 2)
//   grid persistent listed items (i in ITEMS)
//
// Without indices tiles are attention's: batch, head and tile of query rows (indicesOf of fagen/IR/GridQueries.h).
//
//   grid persistent longest_first kTurnRows, kTurnTiles
//   grid clusters 2
//   grid splits 4
//   grid split_keys 512
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

/// In which order tiles are begun. A run is the tiles that differ in the fastest index alone: attention's are a head's.
enum class TileOrder : uint8_t {
  FirstFirst,
  LastFirst,   ///< of each run the last tile comes first
  LongestFirst ///< likewise, and the runs at the end take turns (TurnOrder)
};

struct TurnOrder {
  Count rows;                 ///< of K and V of the runs that take turns
  std::optional<Count> tiles; ///< runs of so many tiles all take turns
  Expr rowsOfRun = {};        ///< how many of these rows a run has; null: attention's seq_kv
};

/// How several CTAs share a tile of attention's. Grids with indices have one for it.
struct TileSplit {
  unsigned number = 0;     ///< of CTAs; 0: as many as fill the GPU
  bool countsKeys = false; ///< of keys for each CTA
};

inline constexpr unsigned kMaxCluster = 8;

struct CtaGrid {
  /// What is worked on at once.
  enum Unit : uint8_t {
    Tiles,   ///< a tile by each CTA
    Rows,    ///< attention's query rows, one by each warp
    KeyTiles ///< key tiles of each of attention's tiles, by warps in turn; launched before the others
  } unit = Tiles;
  bool isPersistent = false; ///< as many CTAs as are resident take tile after tile; else one CTA a tile
  bool isDrawn = false;      ///< which by a counter that gives out tickets; attention's ops say so themselves
  unsigned cluster = 1;      ///< CTAs with neighbouring tiles of a run, which reach each other's shared memory
  std::optional<TileSplit> split = {};
  TileOrder order = TileOrder::FirstFirst; ///< attention's own order follows from its mask, but for LongestFirst
  std::optional<TurnOrder> turns = {};     ///< of LongestFirst
  std::string listed = {};                 ///< the let that says how many of the tiles there are; empty: all
  std::vector<GridIndex> indices = {};     ///< none: attention's

  bool hasClusters() const { return cluster > 1; }
  /// Whether each of attention's tiles has a CTA of its own, and nothing more is said.
  bool isPlain() const { return unit == Tiles && !isPersistent && !split && !hasClusters() && indices.empty(); }
  /// Whether as many CTAs share a tile as fill the GPU.
  bool fillsBySplits() const { return split && !split->countsKeys && split->number == 0; }
};

/// How the CTAs of a launch share attention's tiles, in one word, and the number that goes with it, else 0: as the
/// manifest and the table have it.
llvm::StringRef wordOf(const CtaGrid &grid);
unsigned numberOf(const CtaGrid &grid);

} // namespace fagen::ir
