// fagen: pass split-mask-loops: key tiles that need no masking get a loop of their own.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Interval analysis of the mask over the CTA's query rows gives two bounds: keys below `full_end` are seen by every
// row, keys from `key_end` on by none. Tiles below full_end are the interior loop: no mask op, no guard against rows
// that have seen nothing; tiles between are the edge loop; the rest is never visited.
//
//   keys   0 . . . . . . . full_end . . key_end . . . seq_kv
//   tiles  [ interior ... ][ edge .......... ]  not visited
//
// A loop that rescales lazily stays one (but with wgmma, whose steps overlap), with a branch around the mask: what the
// guards cost there is little, and with one text of the step ptxas has registers for larger tiles.
//
// With wgmma, where later rows see more, the last tile comes first: masked steps lie where no product runs under them
// (issue-products), and CTAs of one head, whose last keys differ, do not all ask for the same bytes at once. Not where
// warp groups can skip last tiles (skip-masked-tiles).
//
//   steps  [ edge ......][ interior ........ ]   step j has key tile key_tiles - (j + 1)
//
// Where a mask bounds keys from below, too, tiles are counted from the first that some row sees. With wgmma the masked
// ones at either end come first, and those at the right before those at the left: there each row sees its own key, so
// that it has a maximum from the first step on. Other kernels go through the tiles from left to right in one loop, with
// a branch around the mask.
//
//   tiles  not visited [ left . . ][ interior . . . ][ right . . ] not visited
//   steps  [ right . . ][ left . . ][ interior . . . ]
//
// Between the first keys and those of a window no row may see any: these tiles are not visited either.
//
//   tiles  [ left ] gap, not visited [ left . . ][ interior . . . ][ right . . ] not visited
//
// Where a condition reads a tensor and bounds no keys, as a map of blocks does, but the ends of a tile tell of it (see
// JudgeMask.cpp), the tiles that are left are judged when the kernel runs. All roles do so, by the same inputs. Those
// that rows see in part come first, each where the judgement says.
//
//   steps  [ edge ......][ interior ........ ]   step j has key tile tile_of(seen, j)

#include "fagen/IR/Queries.h"
#include "fagen/IR/Rescaling.h"
#include "fagen/Passes/Passes.h"

#include "fagen/Target/MmaInstrs.h"

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"

#include <cmath>

using namespace fagen;
using namespace fagen::ir;

namespace {

/// Whether the value may be -inf for an element that a mask lets through.
bool mayHide(const Expr &value) {
  const bool isInfinite = value.kind() == ExprKind::Real && std::isinf(value.realValue());
  return isInfinite || value.kind() == ExprKind::Read || value.kind() == ExprKind::Log2 ||
         llvm::any_of(value.operands(), mayHide);
}

/// Whether a map before the mask makes scores of which all of a row may be -inf.
bool mayHide(const Block &step, const Buffer *scores) {
  for (const std::unique_ptr<Op> &op : step.ops) {
    if (isMask(*op))
      return false;
    const auto map = dynCast<MapOp>(std::as_const(*op));
    if (map && map->dst().buffer == scores && mayHide(map->value()))
      return true;
  }
  return false;
}

/// Takes masks out of a block; and guards against what they leave nothing of, where scores are finite.
void unmask(Block &block, bool isFinite) {
  llvm::erase_if(block.ops, [](const std::unique_ptr<Op> &op) { return isMask(*op); });
  if (isFinite)
    forEach<MapOp>(block, [](MapOp<> map) { map.setValue(assumeFinite(map.value())); });
  for (std::unique_ptr<Op> &op : block.ops)
    unmask(op->body, isFinite);
}

/// In the few steps of an edge loop a branch costs registers and gains nothing.
void rescaleAlways(Block &block) {
  rewrite(block, [](std::unique_ptr<Op> op, Ops &ops) {
    if (op->kind != OpKind::Vote || !isOfRescaling(*op))
      return ops.push_back(std::move(op));
    llvm::move(op->body.ops, std::back_inserter(ops));
  });
}

bool rescalesLazily(const Block &block) {
  const auto found = findRescaling(block.ops);
  return found && found->rescaling.isLazy;
}

/// The lets that count key tiles; `first` and `left` where keys are bounded from below, `gap` of those that no row sees
/// from tile `gapBegin` on.
struct KeyTiles {
  std::string full, all, first = {}, left = {}, gapBegin = {}, gap = {};
  std::string judged = {}; ///< the judgement of tiles, where lets do not know them all
  bool isNeverWhole = false;
  bool isJudged() const { return !judged.empty(); }
  bool hasLeft() const { return !first.empty(); }
  bool hasGap() const { return !gap.empty(); }

  /// The key tile of that number where those of the gap are not counted.
  Expr at(const Expr &number) const {
    const Expr tile = variable(first) + number;
    return hasGap() ? tile + select(lessThan(tile, variable(gapBegin)), constant(0), variable(gap)) : tile;
  }
};

/// Masks nothing in the tiles that every row sees whole.
void branchAroundMask(LoopOp<> loop, const KeyTiles &tiles) {
  const Expr step = variable(loop.variable());
  const Expr isPartial = tiles.isJudged()  ? lessThan(step, variable(tiles.all) - variable(tiles.full))
                         : tiles.hasLeft() ? Expr::binary(ExprKind::Or, lessThan(step, variable(tiles.left)),
                                                          lessEqual(variable(tiles.left) + variable(tiles.full), step))
                                           : lessEqual(variable(tiles.full), step);
  forEachMask(loop->body, [&](MaskMap<Op> mask) { mask.setWhen(isPartial); });
}

std::unique_ptr<Op> interiorOf(const Op &loop) {
  std::unique_ptr<Op> interior = clone(loop);
  unmask(interior->body, !mayHide(loop.body, findMask(loop.body)->s().buffer));
  return interior;
}

/// Step j of the loop has this key tile. Ring positions count steps.
void setTile(LoopOp<> loop, const Expr &tile) {
  const std::string step = loop.variable().str();
  forEach<CopyIssueOp>(loop->body, [&](CopyIssueOp<> copy) { copy.setRow(copy.row().substitute(step, tile)); });
  forEach<MapOp>(loop->body, [&](MapOp<> map) {
    if (map.row())
      map.setRow(map.row().substitute(step, tile));
    if (map.key())
      map.setKey(map.key().substitute(step, tile));
  });
}

/// The edge loop, and behind it the interior one.
void splitEdgeFirst(Ops &ops, Ops::iterator loop, const KeyTiles &tiles) {
  std::unique_ptr<Op> interior = interiorOf(**loop);
  const Expr masked = variable(tiles.all) - variable(tiles.full);
  LoopOp(**loop).setEnd(masked);
  LoopOp(*interior).setBegin(masked);
  LoopOp(*interior).setName("interior");
  ops.insert(std::next(loop), std::move(interior));
}

void splitFirstFirst(Ops &ops, Ops::iterator loop, const KeyTiles &tiles) {
  std::unique_ptr<Op> interior = interiorOf(**loop);
  LoopOp(*interior).setName("interior");
  LoopOp(*interior).setEnd(variable(tiles.full));
  LoopOp(**loop).setBegin(variable(tiles.full));
  ops.insert(loop, std::move(interior));
}

/// Whether some tile below the interior needs the mask, or none is visited.
bool isBoundedBelow(const MaskBounds &bounds) {
  return !(bounds.firstKey == constant(0)) || !(bounds.fullBegin == constant(0)) || bounds.hasGap();
}

/// Those that there are.
llvm::SmallVector<Expr, 6> allOf(const MaskBounds &bounds) {
  llvm::SmallVector<Expr, 6> all{bounds.firstKey, bounds.fullBegin, bounds.fullEnd, bounds.keyEnd};
  if (bounds.hasGap())
    all.append({bounds.gapBegin, bounds.gapEnd});
  return all;
}

/// The variable of a loop that the bounds name: then they are none of the CTA. Empty where there is none.
std::string loopVariableIn(const MaskBounds &bounds, const Block &body) {
  std::string found;
  forEach<LoopOp>(body, [&](LoopOp<const Op> loop) {
    for (const Expr &bound : allOf(bounds))
      if (bound.uses(loop.variable()))
        found = loop.variable().str();
  });
  return found;
}

/// Whether the bounds depend on the let that addBounds replaces: it would then depend on itself.
bool dependOn(const MaskBounds &bounds, const Let *let) {
  return let && llvm::any_of(allOf(bounds), [&](const Expr &bound) { return bound.uses(let->name); });
}

/// Whether tile j of the loop is keys [j * n, (j + 1) * n), for all tiles, as wide as the scores of all warps.
bool isOverKeyTiles(const Kernel &kernel, const Role &role, LoopOp<const Op> loop, ConstMask mask) {
  const Expr keys = keysOf(kernel, mask);
  return loop.begin() == constant(0) && letOf(kernel, loop.end()) && keys &&
         mask.key() == variable(loop.variable()) * keys &&
         constantOf(kernel, keys) == scoresOf(kernel, role, mask).columns;
}

/// The interior loop drops its mask, and its bounds are lets of the kernel: there can be one mask only.
bool fits(const Kernel &kernel, const Role &role, LoopOp<const Op> loop, ConstMask mask, ShapeCheck &shape) {
  unsigned masks = 0;
  for (const Role &role : kernel.roles)
    forEachMask(role.body, [&](ConstMask) { ++masks; });
  return shape.needs(masks == 1, "a single mask in the kernel", mask->location) &&
         shape.needs(isOverKeyTiles(kernel, role, loop, mask),
                     "a loop from 0 to a let whose mask begins at key j * n, where scores have n columns",
                     loop->location) &&
         shape.needs(warpGridOf(kernel, role).rows >= mmaFamily(kernel.backend).unitWarps,
                     "as many warps along the rows as ask for a product together, or more");
}

bool beginsWithLast(const Kernel &kernel, const Role &role, ConstMask mask) {
  return mmaFamily(kernel.backend).isAsynchronous && seesMoreInLaterRows(kernel) &&
         !groupsSkipKeyTiles(kernel, role, mask, warpGridOf(kernel, role).rows / kGroupWarps);
}

/// What bounds read of memory, each in a let of its own, which stands in front of those that name it.
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

/// The key tile of step j where the masked ones at the right come first, then those at the left.
Expr tileFromRight(Kernel &kernel, const KeyTiles &tiles, const Expr &step) {
  const std::string right = kernel.freshName("right_tiles");
  kernel.lets.push_back({right, variable(tiles.all) - variable(tiles.full) - variable(tiles.left),
                         "split-mask-loops: those behind the last that every row sees whole"});
  if (tiles.hasGap()) {
    const Expr inOrder = variable(tiles.left) + variable(tiles.full) + step;
    return tiles.at(select(lessThan(step, variable(right)), inOrder, step - variable(right)));
  }
  return select(lessThan(step, variable(right)), variable(tiles.first) + variable(tiles.left) + variable(tiles.full),
                variable(tiles.first) - variable(right)) +
         step;
}

/// Loop bounds as run-time values. That of all tiles takes the place of the loop's end.
KeyTiles addBounds(Kernel &kernel, const MaskBounds &bounds, const Expr &keys, const Expr &end) {
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

/// Where lets do not know all tiles that rows see, those that they leave are judged when the kernel runs.
KeyTiles addJudgement(Kernel &kernel, ConstMask mask, const MaskBounds &bounds, int64_t rows, const Expr &end) {
  const Expr keys = keysOf(kernel, mask);
  KeyTiles tiles{kernel.freshName("full_tiles"), end.name().str()};
  llvm::erase_if(kernel.lets, [&](const Let &let) { return let.name == tiles.all; });
  tiles.judged = kernel.freshName("seen");
  const std::string low = kernel.freshName("low"), high = kernel.freshName("high");
  const MaskJudgement judgement =
      judgeMask(kernel, mask.predicate(), mask.row(), mask.row() + constant(rows - 1), variable(low), variable(high));
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

/// Whether the mask's bounds can stand in front of the loop, which runs to `end`.
bool canBeBounds(const Kernel &kernel, const Role &role, ConstMask mask, const MaskBounds &bounds, const Expr &end,
                 Diagnostics &diags) {
  const std::string which = "which keys the mask lets through depends on '";
  if (const std::string name = loopVariableIn(bounds, role.body); !name.empty()) {
    diags.error(mask->location, which + name + "', the variable of a loop; it may depend on lets and run-time values");
    return false;
  }
  if (const Let *const replaced = letOf(kernel, end); dependOn(bounds, replaced)) {
    diags.error(mask->location, which + replaced->name +
                                    "', which is to be computed from that; it may depend on other lets and "
                                    "run-time values");
    return false;
  }
  return true;
}

/// One loop, whose mask stands under a condition where some tiles are whole.
void keepOneLoop(LoopOp<> loop, const KeyTiles &tiles) {
  const Expr step = variable(loop.variable());
  loop.setName("tile");
  if (!tiles.isNeverWhole)
    branchAroundMask(loop, tiles);
  if (tiles.isJudged())
    setTile(loop, Expr::binary(ExprKind::TileOf, variable(tiles.judged), step));
  else if (tiles.hasLeft())
    setTile(loop, tiles.at(step));
}

bool splitLoop(Kernel &kernel, Role &role, Ops::iterator loop, ConstMask mask, PassContext &context) {
  const MaskBounds bounds = boundsOf(mask, mask.row(), scoresOf(kernel, role, mask).rows);
  const LoopOp<const Op> asked(std::as_const(**loop));
  const Expr end = asked.end();
  ShapeCheck shape(kernel, context, "split-mask-loops");
  if (!canBeBounds(kernel, role, mask, bounds, end, context.diags) || !fits(kernel, role, asked, mask, shape))
    return false;
  LoopOp edge(**loop);
  const bool isJudged = llvm::any_of(bounds.unknown, [&](const Expr &each) { return canBeJudged(kernel, each); });
  const int64_t rows = scoresOf(kernel, role, mask).rows;
  const MaskBounds inLets = withReadsAsLets(kernel, bounds);
  const KeyTiles tiles =
      isJudged ? addJudgement(kernel, mask, inLets, rows, end) : addBounds(kernel, inLets, keysOf(kernel, mask), end);
  const Expr step = variable(edge.variable());
  const bool isAsynchronous = mmaFamily(kernel.backend).isAsynchronous;
  if (tiles.isNeverWhole ||
      (!isAsynchronous && (tiles.isJudged() || tiles.hasLeft() || rescalesLazily((*loop)->body)))) {
    keepOneLoop(edge, tiles);
    return true;
  }
  Ops &ops = role.body.ops;
  if (tiles.isJudged()) {
    setTile(edge, Expr::binary(ExprKind::TileOf, variable(tiles.judged), step));
    splitEdgeFirst(ops, loop, tiles);
  } else if (tiles.hasLeft()) {
    setTile(edge, tileFromRight(kernel, tiles, step));
    splitEdgeFirst(ops, loop, tiles);
  } else if (beginsWithLast(kernel, role, mask)) {
    setTile(edge, variable(tiles.all) - (step + constant(1)));
    splitEdgeFirst(ops, loop, tiles);
  } else {
    splitFirstFirst(ops, loop, tiles);
  }
  rescaleAlways(edge->body);
  edge.setName("edge");
  return true;
}

} // namespace

bool fagen::splitMaskLoops(Kernel &kernel, PassContext &context) {
  for (Role &role : kernel.roles) {
    Ops &ops = role.body.ops;
    const auto loop = llvm::find_if(ops, [](const std::unique_ptr<Op> &op) { return op->kind == OpKind::Loop; });
    if (loop == ops.end())
      continue;
    if (const auto mask = findMask((*loop)->body); mask && !splitLoop(kernel, role, loop, *mask, context))
      return false;
  }
  kernel.phase = Phase::Split;
  return true;
}
