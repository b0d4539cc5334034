// fagen: makes lets that count key tiles, by the bounds of a mask or by judging tiles when the kernel runs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "KeyTileLets.h"

#include "Classifier.h"

#include "fagen/Target/Target.h"

using namespace fagen;
using namespace fagen::ir;

Expr KeyTiles::at(const Expr &number) const {
  const Expr tile = variable(first) + number;
  return hasGap() ? tile + select(lessThan(tile, variable(gapBegin)), constant(0), variable(gap)) : tile;
}

namespace {

/// Whether some tile below the interior needs the mask, or none is visited.
bool isBoundedBelow(const MaskBounds &bounds) {
  return !(bounds.firstKey == constant(0)) || !(bounds.fullBegin == constant(0)) || bounds.hasGap();
}

/// What bounds read of memory, each in a let of its own, which stands before those that name it.
Expr withReadsAsLets(Kernel &kernel, const Expr &bound) {
  if (!bound)
    return {};
  return bound.rewritten([&](const Expr &node) {
    if (node.kind() == ExprKind::Ascending)
      return node.operand();
    return node.kind() == ExprKind::Read ? letOfRead(kernel, node) : Expr();
  });
}

MaskBounds withReadsAsLets(Kernel &kernel, const MaskBounds &bounds) {
  return {withReadsAsLets(kernel, bounds.firstKey),
          withReadsAsLets(kernel, bounds.fullBegin),
          withReadsAsLets(kernel, bounds.fullEnd),
          withReadsAsLets(kernel, bounds.keyEnd),
          withReadsAsLets(kernel, bounds.gapBegin),
          withReadsAsLets(kernel, bounds.gapEnd),
          bounds.unknown};
}

/// Of masks that bound keys from below, too. The last tile counts as right where it could as well be left.
void addBoundsFromFirst(Kernel &kernel, const MaskBounds &bounds, const Expr &keys, KeyTiles &tiles) {
  auto let = [&](llvm::StringRef name, const Expr &value, const char *note) {
    kernel.lets.push_back({name.str(), value, std::string("split-mask-loops: ") + note});
    return variable(name);
  };
  auto orNone = [](const Expr &value) { return max(value, constant(0)); };
  tiles.first = kernel.freshName("first_tile");
  tiles.left = kernel.freshName("left_tiles");
  const Expr first = let(tiles.first, floorDiv(orNone(bounds.firstKey), keys), "the first key tile that some row sees");
  Expr end = tilesSeen(bounds, keys), gap; // of those that are visited, and those that are not
  if (bounds.hasGap()) {
    tiles.gapBegin = kernel.freshName("gap_begin");
    tiles.gap = kernel.freshName("gap_tiles");
    const Expr gapBegin = let(tiles.gapBegin, max(ceilDiv(orNone(bounds.gapBegin), keys), first),
                              "the key tile at which those begin that no row sees");
    gap = let(tiles.gap, orNone(min(floorDiv(orNone(bounds.gapEnd), keys), end - constant(1)) - gapBegin),
              "those that no row sees, but for the last");
  }
  const Expr skipped = gap ? first + gap : first;
  const Expr all = let(tiles.all, orNone(end - skipped), "key tiles that some row sees");
  const Expr begin = ceilDiv(orNone(bounds.fullBegin), keys);
  let(tiles.left, min(orNone(begin - skipped), orNone(all - constant(1))),
      "those before the first that every row sees whole");
  let(tiles.full, min(orNone(min(tilesSeenWhole(bounds, keys), skipped + all) - max(first, begin)), all),
      "key tiles that every row sees whole");
}

} // namespace

Expr fagen::tileFromRight(Kernel &kernel, const KeyTiles &tiles, const Expr &step) {
  const std::string right = kernel.freshName("right_tiles");
  kernel.lets.push_back({right, variable(tiles.all) - variable(tiles.full) - variable(tiles.left),
                         "split-mask-loops: those after the last that every row sees whole"});
  if (tiles.hasGap()) {
    const Expr inOrder = variable(tiles.left) + variable(tiles.full) + step;
    return tiles.at(select(lessThan(step, variable(right)), inOrder, step - variable(right)));
  }
  return select(lessThan(step, variable(right)), variable(tiles.first) + variable(tiles.left) + variable(tiles.full),
                variable(tiles.first) - variable(right)) +
         step;
}

KeyTiles fagen::addBounds(Kernel &kernel, const MaskBounds &ofMask, const Expr &keys, const Expr &end) {
  const MaskBounds bounds = withReadsAsLets(kernel, ofMask);
  KeyTiles tiles{kernel.freshName("full_tiles"), end.name().str()};
  tiles.isNeverWhole = bounds.fullEnd == constant(0);
  llvm::erase_if(kernel.lets, [&](const Let &let) { return let.name == tiles.all; });
  if (isBoundedBelow(bounds)) {
    addBoundsFromFirst(kernel, bounds, keys, tiles);
    return tiles;
  }
  const Expr seen = tilesSeen(bounds, keys), whole = tilesSeenWhole(bounds, keys);
  const std::optional<Interval> apart = difference(expand(kernel, whole), expand(kernel, seen));
  const bool isPart = apart && apart->high <= 0; // else analyses would take the one to be as large as it likes
  kernel.lets.push_back(
      {tiles.full, isPart ? whole : min(whole, seen), "split-mask-loops: key tiles that every row sees whole"});
  kernel.lets.push_back({tiles.all, seen, "split-mask-loops: key tiles that some row sees"});
  return tiles;
}

/// Of the keys [low, high], by the numbers that classify_tiles has left of the tiles of these keys. A split ends where
/// its keys do.
static MaskJudgement judgeBySights(const Kernel &kernel, ConstMask mask, const Buffer &sights, const Expr &rows,
                                   const Expr &low, const Expr &high) {
  const Expr keys = keysOf(kernel, mask), first = constant(0);
  const bool isSplit = kernel.grid.split.has_value(), packs = kernel.packsHeads();
  auto lastOf = [&](unsigned dimension) { return sights.shape[dimension] - constant(1); };
  auto ifMany = [&](unsigned dimension, RunValue index) {
    return sights.shape[dimension] == constant(1) ? first : variable(index);
  };
  auto tileOf = [&](const Expr &key) {
    return min(floorDiv(isSplit ? key + variable(RunValue::SplitBegin) : key, keys), lastOf(3));
  };
  const Expr batch = ifMany(0, RunValue::BatchIndex), head = ifMany(1, packs ? RunValue::KvHead : RunValue::Head),
             rowTile = min(floorDiv(mask.row(), rows), lastOf(2));
  const Expr box = Expr::read(sights.name, {batch, head, rowTile, tileOf(low), batch, head, rowTile, tileOf(high)});
  const Expr isSeen = Expr::unary(ExprKind::Not, equal(Expr::unary(ExprKind::Highest, box), constant(0))),
             isWhole = equal(Expr::unary(ExprKind::Lowest, box), constant(2)), end = variable(RunValue::SplitKeys);
  if (!isSplit)
    return {isSeen, isWhole};
  return {logicalAnd(lessThan(low, end), isSeen), logicalAnd(lessThan(high, end), isWhole)};
}

/// The warps that load judge tiles, too. That takes more registers than the places of copies do, so they keep more of
/// what they begin with; a group that multiplies takes the less, in units of 8 (PTX ISA, setmaxnreg).
static void giveLoaderRegisters(Kernel &kernel) {
  constexpr int64_t kUnit = 8;
  const TargetInfo &target = targetOrFirst(kernel.target);
  const int64_t ofSm = target.registersPerSm / kLanes, ofJudge = target.policy.judgeRegisters;
  const int64_t warps = measureOf(kernel, Measure::Warps).value_or(kGroupWarps);
  const int64_t left = (ofSm - ofJudge * kGroupWarps) / warps / kUnit * kUnit;
  for (Constant &constant : kernel.constants)
    if (constant.name == nameOf(Measure::LoadRegisters))
      constant.value = ofJudge;
    else if (constant.name == nameOf(Measure::MathRegisters))
      constant.value = std::min(constant.value, left);
}

KeyTiles fagen::addJudgement(Kernel &kernel, ConstMask mask, const MaskBounds &ofMask, int64_t rows, const Expr &end,
                             const Buffer *sights) {
  const MaskBounds bounds = withReadsAsLets(kernel, ofMask);
  const Expr keys = keysOf(kernel, mask);
  giveLoaderRegisters(kernel);
  KeyTiles tiles{kernel.freshName("full_tiles"), end.name().str()};
  llvm::erase_if(kernel.lets, [&](const Let &let) { return let.name == tiles.all; });
  tiles.judged = kernel.freshName("seen");
  const std::string low = kernel.freshName("low"), high = kernel.freshName("high");
  const MaskJudgement judgement =
      sights ? judgeBySights(kernel, mask, *sights, tileRows(kernel, rows), variable(low), variable(high))
             : judgeMask(kernel, mask.predicate(), mask.row(), mask.row() + constant(rows - 1), variable(low),
                         variable(high));
  tiles.isNeverWhole = judgement.whole == constant(0);
  const Expr first = floorDiv(max(bounds.firstKey, constant(0)), keys);
  const Expr seen = variable(tiles.judged), all = Expr::unary(ExprKind::SeenTiles, seen);
  kernel.lets.push_back({.name = tiles.judged,
                         .value = seen,
                         .note = "split-mask-loops: which key tiles rows see",
                         .judged = TileJudgement{first, max(tilesSeen(bounds, keys) - first, constant(0)), low, high,
                                                 judgement.seen, judgement.whole}});
  kernel.lets.push_back({tiles.full, min(Expr::unary(ExprKind::WholeTiles, seen), all),
                         "split-mask-loops: key tiles that every row sees whole"});
  kernel.lets.push_back({tiles.all, all, "split-mask-loops: key tiles that some row may see"});
  return tiles;
}
