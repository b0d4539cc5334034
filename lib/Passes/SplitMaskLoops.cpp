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
// With wgmma the last tile comes first: masked steps lie where no product runs under them (issue-products), and where
// later rows see more, CTAs of one head do not all read the same bytes at once. Not where warp groups can skip last
// tiles (skip-masked-tiles).
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
//
// A mask that stands under a condition already is where the text wants it, and its loop stays as it is.
//
// Where only the elements of a tile tell, a launch before reads them (tiles/Classifier.h), and tiles are judged by what
// it has found.

#include "fagen/IR/Queries.h"
#include "fagen/IR/Rescaling.h"
#include "fagen/Passes/Passes.h"

#include "fagen/Target/MmaInstrs.h"

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"
#include "tiles/Classifier.h"
#include "tiles/KeyTileLets.h"

#include <cmath>

using namespace fagen;
using namespace fagen::ir;

namespace {

/// Whether scores may be -inf for keys that the mask lets through.
class HiddenScores {
public:
  HiddenScores(const Kernel &kernel, const Role &role, const Buffer *scores)
      : kernel(kernel), role(role), scores(scores) {}

  /// Whether a map before the mask makes scores of which all of a row may be -inf.
  bool mayBeIn(const Block &step) const {
    for (const std::unique_ptr<Op> &op : step.ops) {
      if (isMask(*op))
        return false;
      const auto map = dynCast<MapOp>(std::as_const(*op));
      if (map && map->dst().buffer == scores && (mayHide(map->value()) || mayOverflow(map->value())))
        return true;
    }
    return false;
  }

private:
  /// A factor that elements share is finite if a tensor holds it, as slopes are: an infinite one times a distance of 0
  /// is NaN.
  bool mayHide(const Expr &value) const {
    const bool isInfinite = value.kind() == ExprKind::Real && std::isinf(value.realValue());
    if (isInfinite || value.kind() == ExprKind::Read || value.kind() == ExprKind::Log2)
      return true;
    if (value.kind() == ExprKind::Variable) {
      const Expr shared = sharedValue(value);
      return shared && mayHide(shared);
    }
    return llvm::any_of(value.operands(), [&](const Expr &operand) {
      const Expr shared = value.kind() == ExprKind::Mul ? sharedValue(operand) : Expr();
      return !(shared && shared.kind() == ExprKind::Read) && mayHide(operand);
    });
  }

  bool growsWithScore(const Expr &value) const {
    return value == elementOf(*scores) ||
           (value.kind() != ExprKind::Tanh &&
            llvm::any_of(value.operands(), [&](const Expr &operand) { return growsWithScore(operand); }));
  }

  /// Neither scale, a constant of a usual size, nor a product of these.
  bool isWideFactor(const Expr &value) const {
    constexpr double kUsual = 1 << 20;
    if (const Expr shared = sharedValue(value))
      return isWideFactor(shared);
    if (value.kind() == ExprKind::Mul)
      return llvm::any_of(value.operands(), [&](const Expr &factor) { return isWideFactor(factor); });
    return value.kind() == ExprKind::Real ? std::abs(value.realValue()) > kUsual
                                          : !(value == variable(RunValue::Scale));
  }

  /// Whether finite scores may become -inf all along a row: their powers, quotients, and products of more than one of
  /// them and scale.
  bool mayOverflow(const Expr &value) const {
    const bool mayGrow = value.kind() == ExprKind::Exp2 || value.kind() == ExprKind::Div ||
                         (value.kind() == ExprKind::Mul && llvm::count_if(value.operands(), [&](const Expr &factor) {
                                                             return isWideFactor(factor);
                                                           }) > 1);
    return (mayGrow && growsWithScore(value)) ||
           (value.kind() != ExprKind::Tanh &&
            llvm::any_of(value.operands(), [&](const Expr &operand) { return mayOverflow(operand); }));
  }

  /// What a let, or a value for each row, is before the loop; null for others.
  Expr sharedValue(const Expr &value) const {
    if (const Let *const let = letOf(kernel, value))
      return let->value;
    for (const std::unique_ptr<Op> &op : role.body.ops)
      if (const auto map = dynCast<MapOp>(std::as_const(*op)); map && map->dst().buffer != scores &&
                                                               elementOf(*map->dst().buffer) == value &&
                                                               !map->value().uses(value.name()))
        return map->value();
    return {};
  }

  const Kernel &kernel;
  const Role &role;
  const Buffer *const scores;
};

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

/// Masks nothing in the tiles that every row sees whole.
void branchAroundMask(LoopOp<> loop, const KeyTiles &tiles) {
  const Expr step = variable(loop.variable());
  const Expr isPartial = tiles.isJudged()  ? lessThan(step, variable(tiles.all) - variable(tiles.full))
                         : tiles.hasLeft() ? Expr::binary(ExprKind::Or, lessThan(step, variable(tiles.left)),
                                                          lessEqual(variable(tiles.left) + variable(tiles.full), step))
                                           : lessEqual(variable(tiles.full), step);
  forEachMask(loop->body, [&](MaskMap<Op> mask) { mask.setWhen(isPartial); });
}

std::unique_ptr<Op> interiorOf(const Kernel &kernel, const Role &role, const Op &loop) {
  std::unique_ptr<Op> interior = clone(loop);
  const HiddenScores hidden(kernel, role, findMask(loop.body)->s().buffer);
  unmask(interior->body, !hidden.mayBeIn(loop.body));
  return interior;
}

/// Step j of the loop has this key tile. Ring positions count steps; what is copied is the tile's.
void setTile(LoopOp<> loop, const Expr &tile) {
  const std::string step = loop.variable().str();
  forEach<CopyIssueOp>(loop->body, [&](CopyIssueOp<> copy) {
    for (Attr attribute : {Attr::Row, Attr::Column, Attr::Limit, Attr::When})
      if (copy->has(attribute))
        copy->attributes[attribute] = copy->expr(attribute).substitute(step, tile);
    for (Operand &operand : copy->operands)
      if (operand.position && operand.buffer->space == Space::Global)
        operand.position = operand.position.substitute(step, tile);
  });
  forEach<MapOp>(loop->body, [&](MapOp<> map) {
    if (map.row())
      map.setRow(map.row().substitute(step, tile));
    if (map.key())
      map.setKey(map.key().substitute(step, tile));
    if (map.when())
      map.setWhen(map.when().substitute(step, tile));
  });
}

/// Of key tiles, or steps.
constexpr llvm::StringLiteral kInPart = ", of which some rows see only a part";

void nameInterior(Op &loop) {
  LoopOp(loop).setName("interior");
  tellPart(loop, ", which every row sees whole");
}

/// The edge loop, and after it the interior one.
void splitEdgeFirst(const Kernel &kernel, Role &role, Ops::iterator loop, const KeyTiles &tiles) {
  std::unique_ptr<Op> interior = interiorOf(kernel, role, **loop);
  const Expr masked = variable(tiles.all) - variable(tiles.full);
  LoopOp(**loop).setEnd(masked);
  LoopOp(*interior).setBegin(masked);
  nameInterior(*interior);
  role.body.ops.insert(std::next(loop), std::move(interior));
}

void splitFirstFirst(const Kernel &kernel, Role &role, Ops::iterator loop, const KeyTiles &tiles) {
  std::unique_ptr<Op> interior = interiorOf(kernel, role, **loop);
  nameInterior(*interior);
  LoopOp(*interior).setEnd(variable(tiles.full));
  LoopOp(**loop).setBegin(variable(tiles.full));
  role.body.ops.insert(loop, std::move(interior));
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
                     "as many warps along the rows as issue a product together, or more");
}

bool beginsWithLast(const Kernel &kernel, const Role &role, ConstMask mask) {
  return mmaFamily(kernel.backend).isAsynchronous &&
         !groupsSkipKeyTiles(kernel, role, mask, warpGridOf(kernel, role).rows / kGroupWarps);
}

/// Whether the mask's bounds can stand before the loop, which runs to `end`.
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
  if (tiles.isJudged())
    setTile(loop, Expr::binary(ExprKind::TileOf, variable(tiles.judged), step));
  else if (tiles.hasLeft())
    setTile(loop, tiles.at(step));
  if (!tiles.isNeverWhole)
    branchAroundMask(loop, tiles); // by steps
  else
    tellPart(*loop, kInPart);
}

/// Whether some tile is judged by more than a role may read of it.
bool needsSights(const Kernel &kernel, const MaskBounds &bounds) {
  return llvm::any_of(bounds.unknown, [&](const Expr &each) { return needsMore(kernel, each, JudgedReads::Few); });
}

bool splitLoop(Kernel &kernel, Role &role, Ops::iterator loop, ConstMask mask, PassContext &context) {
  const MaskBounds bounds = boundsOf(kernel, mask, mask.row(), scoresOf(kernel, role, mask).rows);
  const LoopOp<const Op> asked(std::as_const(**loop));
  const Expr end = asked.end();
  ShapeCheck shape(kernel, context, "split-mask-loops");
  if (!canBeBounds(kernel, role, mask, bounds, end, context.diags) || !fits(kernel, role, asked, mask, shape))
    return false;
  LoopOp edge(**loop);
  const bool isJudged = llvm::any_of(bounds.unknown, [&](const Expr &each) { return canBeJudged(kernel, each); });
  const int64_t rows = scoresOf(kernel, role, mask).rows;
  const Buffer *const sights =
      needsSights(kernel, bounds) ? &addClassifier(*context.program, kernel, mask, rows) : nullptr;
  const KeyTiles tiles = sights || isJudged ? addJudgement(kernel, mask, bounds, rows, end, sights)
                                            : addBounds(kernel, bounds, keysOf(kernel, mask), end);
  const Expr step = variable(edge.variable());
  const bool isAsynchronous = mmaFamily(kernel.backend).isAsynchronous;
  if (tiles.isNeverWhole ||
      (!isAsynchronous && (tiles.isJudged() || tiles.hasLeft() || rescalesLazily((*loop)->body)))) {
    keepOneLoop(edge, tiles);
    return true;
  }
  if (tiles.isJudged()) {
    setTile(edge, Expr::binary(ExprKind::TileOf, variable(tiles.judged), step));
    splitEdgeFirst(kernel, role, loop, tiles);
  } else if (tiles.hasLeft()) {
    setTile(edge, tileFromRight(kernel, tiles, step));
    splitEdgeFirst(kernel, role, loop, tiles);
  } else if (beginsWithLast(kernel, role, mask)) {
    setTile(edge, variable(tiles.all) - (step + constant(1)));
    tellPart(*edge, " from the end");
    splitEdgeFirst(kernel, role, loop, tiles);
  } else {
    splitFirstFirst(kernel, role, loop, tiles);
  }
  rescaleAlways(edge->body);
  edge.setName("edge");
  tellPart(*edge, kInPart);
  return true;
}

} // namespace

bool fagen::splitMaskLoops(Kernel &kernel, PassContext &context) {
  for (Role &role : kernel.roles) {
    if (kernel.roles.size() > 1) // tiles would change places where they are used, and not where another role copies
      continue;
    Ops &ops = role.body.ops;
    const auto loop = llvm::find_if(ops, [](const std::unique_ptr<Op> &op) { return op->kind == OpKind::Loop; });
    if (loop == ops.end())
      continue;
    const auto mask = findMask((*loop)->body);
    const bool isPlaced = mask && mask->when(); // the text says itself which tiles need it
    if (mask && !isPlaced && !splitLoop(kernel, role, loop, *mask, context))
      return false;
  }
  kernel.phase = Phase::Split;
  return true;
}
