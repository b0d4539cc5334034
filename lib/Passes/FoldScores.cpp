// fagen: pass fold-scores: what a form makes of scores joins exp2, where nothing stands between.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step that takes no maximum and masks nothing needs its scores for their powers alone:
//
//   before   s = s scale + b;   s = exp2(s c - m c)
//   after    s = exp2(s (scale c) + (b c - m c))
//
// Terms that are added become part of what exp2 subtracts anyway: one multiply-add a score less. Other scores stay. So
// do those of any size, whose powers take the difference s - m first: it is exact of scores that f32 has rounded.

#include "fagen/IR/Factors.h"
#include "fagen/IR/Patterns.h"
#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// Whether the map makes scores of scores alone, and is no mask.
bool isScore(const Op &op, const Buffer *scores) {
  const auto map = dynCast<MapOp>(op);
  return map && map->dst().buffer == scores && !map->x().buffer && !isMask(op) && !asFill(op) && !op.has(Attr::When);
}

/// a + b as a and b, the one that names the scores first.
std::optional<std::pair<Expr, Expr>> termsOf(const Expr &sum, const Buffer &scores) {
  if (sum.kind() != ExprKind::Add)
    return std::nullopt;
  const bool isSecond = !sum.lhs().uses(elementOf(scores).name());
  return isSecond ? std::pair(sum.rhs(), sum.lhs()) : std::pair(sum.lhs(), sum.rhs());
}

/// The map to powers that does both; null where the score is no sum, and nothing would be saved.
std::unique_ptr<Op> fold(MapOp<const Op> score, const Op &powersOp) {
  const Powers powers = *asPowers(powersOp);
  const auto terms = termsOf(timesUniform(score.value(), powers.factor), *powers.scores->buffer);
  if (!terms)
    return nullptr;
  const Expr shift = elementOf(*powers.shift->buffer);
  const Expr less = (powers.isGuarded ? finiteOf(shift) : shift) * powers.factor;
  return makeMap({.dst = score.dst(),
                  .x = *powers.shift,
                  .value = exp2(terms->first + (terms->second - less)),
                  .row = score.row(),
                  .key = score.key(),
                  .location = powersOp.location,
                  .note = powersOp.note});
}

bool foldIn(Block &block) {
  bool hasChanged = false;
  for (size_t i = 0; i + 1 < block.ops.size(); ++i) {
    const auto powers = asPowers(*block.ops[i + 1]);
    if (!powers || powers->order == ExponentOrder::DifferenceFirst || block.ops[i + 1]->has(Attr::Every) ||
        !isScore(*block.ops[i], powers->scores->buffer))
      continue;
    std::unique_ptr<Op> both = fold(MapOp(std::as_const(*block.ops[i])), *block.ops[i + 1]);
    if (!both)
      continue;
    block.ops[i] = std::move(both);
    block.ops.erase(block.ops.begin() + i + 1);
    hasChanged = true;
  }
  for (std::unique_ptr<Op> &op : block.ops)
    hasChanged |= foldIn(op->body);
  return hasChanged;
}

} // namespace

bool fagen::foldScores(Kernel &kernel, PassContext &) {
  bool hasChanged = false;
  for (Role &role : kernel.roles)
    hasChanged |= foldIn(role.body);
  return hasChanged;
}
