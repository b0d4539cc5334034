// fagen: the grid of a kernel, from text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ParseGrid.h"

using namespace fagen;
using namespace fagen::ir;
using llvm::StringRef;

namespace {

/// What a grid begins with.
enum class GridWord : uint8_t { Tiles, Persistent, Splits, SplitKeys, Rows, Clusters, KeyTiles };
constexpr GridWord kGridWords[] = {GridWord::Tiles, GridWord::Persistent, GridWord::Splits,  GridWord::SplitKeys,
                                   GridWord::Rows,  GridWord::Clusters,   GridWord::KeyTiles};

StringRef toString(GridWord word) {
  switch (word) {
  case GridWord::Tiles:
    return "tiles";
  case GridWord::Persistent:
    return "persistent";
  case GridWord::Splits:
    return "splits";
  case GridWord::SplitKeys:
    return "split_keys";
  case GridWord::Rows:
    return "rows";
  case GridWord::Clusters:
    return "clusters";
  case GridWord::KeyTiles:
    return "key_tiles";
  }
  return {};
}

class GridParser {
public:
  GridParser(Lexer &lexer, Kernel &kernel, BufferParser &buffers) : lexer(lexer), grid(kernel.grid), buffers(buffers) {}

  bool parse() {
    GridWord word = GridWord::Tiles;
    if (!grid.isPlain())
      return lexer.error(lexer.position(), "the grid is given twice");
    if (!lexer.expect("grid") || !lexer.enumeration(word, kGridWords, "grid") || !parseWord(word))
      return false;
    if (lexer.accept("clusters") && !parseCluster())
      return false;
    grid.isDrawn = lexer.accept("drawn");
    if (lexer.accept("listed") && !parseName(grid.listed, "a let"))
      return false;
    return (!lexer.accept("(") || parseIndices()) && parseOrder();
  }

private:
  bool parseWord(GridWord word) {
    switch (word) {
    case GridWord::Tiles:
      return true;
    case GridWord::Persistent:
      return grid.isPersistent = true;
    case GridWord::Clusters:
      grid.isPersistent = true;
      return parseCluster();
    case GridWord::Rows:
      grid.unit = CtaGrid::Rows;
      return true;
    case GridWord::KeyTiles:
      grid.unit = CtaGrid::KeyTiles;
      return true;
    case GridWord::Splits:
    case GridWord::SplitKeys:
      grid.split = TileSplit{0, word == GridWord::SplitKeys};
      return lexer.number(grid.split->number);
    }
    return false;
  }

  bool parseCluster() {
    const char *const place = lexer.position();
    if (!lexer.number(grid.cluster))
      return false;
    return (grid.cluster >= 2 && grid.cluster <= kMaxCluster) ||
           lexer.error(place, "grid clusters " + llvm::Twine(grid.cluster) + "; a cluster has 2 to " +
                                  llvm::Twine(kMaxCluster) + " CTAs");
  }

  bool parseName(std::string &name, const char *what) {
    StringRef word;
    const bool isFound = lexer.word(word, what);
    name = word.str();
    return isFound;
  }

  /// m in ceil_div(M, 128), n in ...)
  bool parseIndices() {
    do {
      GridIndex &index = grid.indices.emplace_back();
      if (!parseName(index.name, "an index of the grid") || !lexer.expect("in") || !lexer.expression(index.extent))
        return false;
    } while (lexer.accept(","));
    return lexer.expect(")");
  }

  /// last_first, or longest_first kTurnRows [of S] [, kTurnTiles]
  bool parseOrder() {
    if (lexer.accept("last_first"))
      grid.order = TileOrder::LastFirst;
    if (grid.order == TileOrder::LastFirst || !lexer.accept("longest_first"))
      return true;
    grid.order = TileOrder::LongestFirst;
    TurnOrder &turns = grid.turns.emplace();
    return buffers.parseCount(turns.rows) && (!lexer.accept("of") || lexer.expression(turns.rowsOfRun)) &&
           (!lexer.accept(",") || buffers.parseCount(turns.tiles.emplace()));
  }

  Lexer &lexer;
  CtaGrid &grid;
  BufferParser &buffers;
};

} // namespace

bool ir::parseGrid(Lexer &lexer, Kernel &kernel, BufferParser &buffers) {
  return GridParser(lexer, kernel, buffers).parse();
}
