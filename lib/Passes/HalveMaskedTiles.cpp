// fagen: pass halve-masked-tiles: a warp group multiplies the half of the last key tile that its rows see.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Of a causal tile of 128 x 128 on the diagonal the first warp group has rows 0 to 63: they see keys 0 to 63. With
// halve_masked = 1 the step of the last key tile stands there twice, and each group takes one of the two:
//
//   keys   0 . . 63 64 . 127
//   rows   [ part ][ none  ]    0 to 63: half of the scores, half of the softmax; P of the other half is 0
//          [ whole][ part  ]  64 to 127: as before
//
//   math   loop j = 0 to tiles - wide name "half"     one step where no row of the group sees the second half
//          loop j = tiles - wide to min(tiles, 1)     one step where some row does
//
// `wide` counts the key tiles of which some row of the group sees the second half: all of them, or all but the last.
// Everything else of the two steps is the same, so that all counts stay as they are. P V takes the whole of P.
//
// The kernel stays as it is where its first step is not that of the last key tile: where groups skip tiles, or where a
// mask bounds keys from below.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "AskedNumbers.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// Half of a fragment's columns are whole slices of 16 keys, as P V takes them.
constexpr unsigned kSliceKeys = 16;

class TileHalver {
public:
  TileHalver(Kernel &kernel, Role &math)
      : kernel(kernel), math(math), ops(turnsOf(math) ? (*turnsOf(math))->body.ops : math.body.ops),
        groups(math.warps / kGroupWarps) {}

  bool run() {
    const auto first = llvm::find_if(ops, [this](const std::unique_ptr<Op> &op) { return isStepOfLastTile(*op); });
    const bool knowsRows = math.firstWarp + math.warps == kernel.threads / 32;
    if (first == ops.end() || !knowsRows)
      return false;
    const LoopOp step(**first);
    const auto mask = *findMask(step->body);
    const Expr tiles = step.end().lhs(), wide = tilesSeenWide(mask);
    if (!isAllOrAllButLast(wide, tiles))
      return false;
    const std::string name = kernel.freshName("wide_" + tiles.name().str());
    kernel.lets.push_back(
        {name, wide, "halve-masked-tiles: key tiles of which some row of the group sees the second half"});
    const Expr narrow = tiles - variable(name);
    auto half = halved(*step, *mask.s().buffer);
    LoopOp(*half).setEnd(narrow);
    step.setBegin(narrow);
    ops.insert(first, std::move(half));
    return true;
  }

private:
  /// loop j = 0 to min(tiles, 1), whose scores are masked as those of the last key tile there is, and then converted.
  bool isStepOfLastTile(const Op &op) const {
    const auto loop = dynCast<LoopOp>(op);
    const auto mask = loop ? findMask(op.body) : std::nullopt;
    if (!mask || !keysOf(kernel, *mask) || !(loop->begin() == constant(0)))
      return false;
    const Expr end = loop->end(), key = mask->key();
    const Buffer &s = *mask->s().buffer;
    if (end.kind() != ExprKind::Min || !(end.rhs() == constant(1)) || s.space != Space::Fragment ||
        s.columns % (2 * kSliceKeys) != 0 || !isSeenTiles(*mask, end.lhs()))
      return false;
    const auto apart = difference(key.lhs().substitute(loop->variable(), constant(0)), end.lhs() - constant(1));
    return apart && apart->low == 0 && apart->high == 0;
  }

  /// Whether it is the let that counts all key tiles of which rows of the CTA see a key.
  bool isSeenTiles(ConstMask mask, const Expr &tiles) const {
    const MaskBounds bounds = boundsOf(kernel, mask, mask.row(), scoresOf(kernel, math, mask).rows);
    const Let *const seen = letWith(kernel, tilesSeen(bounds, keysOf(kernel, mask)));
    return seen && seen == letOf(kernel, tiles);
  }

  /// Of the group's own rows: seen are tiles that begin half a tile later.
  Expr tilesSeenWide(ConstMask mask) const {
    const llvm::StringRef key = nameOf(RunValue::ElementKey);
    const Expr later = variable(key) + constant(scoresOf(kernel, math, mask).columns / 2);
    const MaskBounds bounds =
        analyzeMask(mask.predicate().substitute(key, later), nameOf(RunValue::ElementRow), key,
                    mask.row() + variable(RunValue::GroupRow), scoresOf(kernel, math, mask).rows / groups, &kernel);
    return tilesSeen(bounds, keysOf(kernel, mask));
  }

  bool isAllOrAllButLast(const Expr &wide, const Expr &tiles) const {
    for (unsigned group = 0; group < groups; ++group) {
      const auto apart = difference(atGroup(kernel, expand(kernel, wide), group), expand(kernel, tiles));
      if (!apart || apart->low < -1 || apart->high > 0)
        return false;
    }
    return true;
  }

  /// The step with scores of half as many columns.
  std::unique_ptr<Op> halved(const Op &step, const Buffer &s) {
    Buffer left = s;
    left.name = kernel.freshName(s.name + "_half");
    left.columns = kernel.addConstant(kernel.freshName("kHalfKeys"), s.columns / 2, "= " + s.columns.str() + " / 2");
    const Buffer &all = s;
    Buffer &half = kernel.addBuffer(std::move(left));
    std::unique_ptr<Op> op = clone(step);
    LoopOp(*op).setName("half");
    LoopOp(*op).setAbout("The first step where rows of the group see the first half of its keys alone");
    substitute(*op, elementOf(all).name(), elementOf(half));
    walk(op->body, [&](Op &inner) {
      for (Operand &operand : inner.operands)
        if (operand.buffer == &all)
          operand.buffer = &half;
    });
    forEachMask(op->body, [](MaskMap<Op> mask) { mask->attributes.erase(Attr::When); }); // some key is masked there
    return op;
  }

  Kernel &kernel;
  Role &math;
  Ops &ops; ///< that hold the loops over key tiles
  const unsigned groups;
};

} // namespace

bool fagen::halveMaskedTiles(Kernel &kernel, PassContext &) {
  const Constant *const asked = askedNumber(kernel, OptionKey::HalveMasked);
  const auto fillers = fillersOf(kernel);
  if (fillers.empty() || !asked)
    return false;
  bool hasChanged = false;
  for (Role *math : multipliersBeside(kernel, fillers))
    hasChanged |= TileHalver(kernel, *math).run();
  return hasChanged;
}
