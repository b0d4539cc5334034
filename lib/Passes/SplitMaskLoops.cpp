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

#include "fagen/IR/Queries.h"
#include "fagen/IR/Rescaling.h"
#include "fagen/Passes/Passes.h"

#include "fagen/Target/MmaInstrs.h"

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// Takes masks, and guards against what they leave nothing of, out of a block.
void unmask(Block &block) {
  llvm::erase_if(block.ops, [](const std::unique_ptr<Op> &op) { return isMask(*op); });
  forEach<MapOp>(block, [](MapOp<> map) { map.setValue(assumeFinite(map.value())); });
  for (std::unique_ptr<Op> &op : block.ops)
    unmask(op->body);
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

/// The lets that count key tiles.
struct KeyTiles {
  std::string full, all;
};

/// Masks nothing before the tiles that not every row sees whole.
void branchAroundMask(LoopOp<> loop, const KeyTiles &tiles) {
  forEachMask(loop->body,
              [&](MaskMap<Op> mask) { mask.setWhen(lessEqual(variable(tiles.full), variable(loop.variable()))); });
}

std::unique_ptr<Op> interiorOf(const Op &loop) {
  std::unique_ptr<Op> interior = clone(loop);
  unmask(interior->body);
  return interior;
}

/// Step j of the loop has key tile key_tiles - (j + 1). Ring positions count steps.
void countBack(LoopOp<> loop, const KeyTiles &tiles) {
  const std::string step = loop.variable().str();
  const Expr tile = variable(tiles.all) - (variable(step) + constant(1));
  forEach<CopyIssueOp>(loop->body, [&](CopyIssueOp<> copy) { copy.setRow(copy.row().substitute(step, tile)); });
  forEachMask(loop->body, [&](MaskMap<Op> mask) {
    mask.setRow(mask.row().substitute(step, tile));
    mask.setKey(mask.key().substitute(step, tile));
  });
}

/// The edge loop, and behind it the interior one.
void splitLastFirst(Ops &ops, Ops::iterator loop, const KeyTiles &tiles) {
  countBack(LoopOp(**loop), tiles);
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

/// The variable of a loop that the bounds name: then they are none of the CTA. Empty where there is none.
std::string loopVariableIn(const MaskBounds &bounds, const Block &body) {
  std::string found;
  forEach<LoopOp>(body, [&](LoopOp<const Op> loop) {
    for (const Expr &bound : {bounds.fullEnd, bounds.keyEnd})
      if (bound.uses(loop.variable()))
        found = loop.variable().str();
  });
  return found;
}

/// Whether the bounds depend on the let that addBounds replaces: it would then depend on itself.
bool dependOn(const MaskBounds &bounds, const Let *let) {
  return let && (bounds.fullEnd.uses(let->name) || bounds.keyEnd.uses(let->name));
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

/// Loop bounds as run-time values. That of all tiles takes the place of the loop's end.
KeyTiles addBounds(Kernel &kernel, const MaskBounds &bounds, const Expr &keys, const Expr &end) {
  const KeyTiles tiles{kernel.freshName("full_tiles"), end.name().str()};
  llvm::erase_if(kernel.lets, [&](const Let &let) { return let.name == tiles.all; });
  kernel.lets.push_back(
      {tiles.full, tilesSeenWhole(bounds, keys), "split-mask-loops: key tiles that every row sees whole"});
  kernel.lets.push_back({tiles.all, tilesSeen(bounds, keys), "split-mask-loops: key tiles that some row sees"});
  return tiles;
}

} // namespace

bool fagen::splitMaskLoops(Kernel &kernel, PassContext &context) {
  ShapeCheck shape(kernel, context, "split-mask-loops");
  for (Role &role : kernel.roles) {
    Ops &ops = role.body.ops;
    auto loop = llvm::find_if(ops, [](const std::unique_ptr<Op> &op) { return op->kind == OpKind::Loop; });
    if (loop == ops.end())
      continue;
    const auto mask = findMask((*loop)->body);
    if (!mask)
      continue;
    const MaskBounds bounds = boundsOf(*mask, mask->row(), scoresOf(kernel, role, *mask).rows);
    if (const std::string name = loopVariableIn(bounds, role.body); !name.empty()) {
      context.diags.error((*mask)->location,
                          "which keys the mask lets through depends on '" + name +
                              "', the variable of a loop; it may depend on lets and run-time values");
      return false;
    }
    const Expr end = LoopOp(std::as_const(**loop)).end();
    if (const Let *const replaced = letOf(kernel, end); dependOn(bounds, replaced)) {
      context.diags.error((*mask)->location,
                          "which keys the mask lets through depends on '" + replaced->name +
                              "', which is to be computed from that; it may depend on other lets and "
                              "run-time values");
      return false;
    }
    LoopOp edge(**loop);
    if (!fits(kernel, role, LoopOp(std::as_const(**loop)), *mask, shape))
      return false;
    const KeyTiles tiles = addBounds(kernel, bounds, keysOf(kernel, *mask), end);
    if (!mmaFamily(kernel.backend).isAsynchronous && rescalesLazily((*loop)->body)) {
      edge.setName("tile");
      branchAroundMask(edge, tiles);
      continue;
    }
    if (beginsWithLast(kernel, role, *mask))
      splitLastFirst(ops, loop, tiles);
    else
      splitFirstFirst(ops, loop, tiles);
    rescaleAlways(edge->body);
    edge.setName("edge");
  }
  kernel.phase = Phase::Split;
  return true;
}
