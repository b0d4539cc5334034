// fagen: the keys that splits of a tile of query rows share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SharedKeys.h"

#include "SizeProgram.h"

#include "fagen/IR/ExprAnalysis.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/RunValues.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

/// As a split would have it that has all keys; what lets have read is named by them.
static Expr ofAllKeys(const Kernel &kernel, const Expr &bound) {
  if (!bound)
    return bound;
  const Expr named = bound.rewritten([&](const Expr &node) {
    for (const Let &let : kernel.lets)
      if (let.source && node == Expr::read(let.source->buffer->name, let.source->at))
        return variable(let.name);
    return Expr();
  });
  return named.substitute(nameOf(RunValue::SplitBegin), constant(0))
      .substitute(nameOf(RunValue::SplitKeys), variable(RunValue::SeqKv));
}

static const Role *findMaskingRole(const Kernel &kernel) {
  const auto role = llvm::find_if(kernel.roles, [](const Role &each) { return findMask(each.body).has_value(); });
  return role == kernel.roles.end() ? nullptr : &*role;
}

std::optional<SharedKeys> fagen::sharedKeys(const Kernel &kernel) {
  const Role *const role = findMaskingRole(kernel);
  if (!kernel.grid.split || kernel.grid.split->countsKeys || !role ||
      llvm::any_of(kernel.lets, [](const Let &let) { return let.judged.has_value(); }))
    return std::nullopt;
  const auto mask = findMask(role->body);
  const MaskBounds bounds = boundsOf(kernel, *mask, mask->row(), scoresOf(kernel, *role, *mask).rows);
  const SharedKeys keys{ofAllKeys(kernel, bounds.firstKey), ofAllKeys(kernel, bounds.keyEnd),
                        ofAllKeys(kernel, bounds.gapBegin), ofAllKeys(kernel, bounds.gapEnd)};
  const bool areFew = bounds.hasGap() || !(bounds.firstKey == constant(0)) ||
                      llvm::any_of(kernel.lets, [&](const Let &let) { return let.source && keys.end.uses(let.name); });
  const bool areKnown = llvm::none_of(std::array{keys.first, keys.end, keys.gapBegin, keys.gapEnd},
                                      [](const Expr &bound) { return bound && readsMemory(bound); });
  return areFew && areKnown ? std::optional(keys) : std::nullopt;
}

std::vector<SelectOp> fagen::countSharedTiles(const Kernel &kernel) {
  const std::optional<SharedKeys> shared = sharedKeys(kernel);
  if (!shared || !kernel.grid.fillsBySplits())
    return {};
  const Expr keys = keysOf(kernel, *findMask(findMaskingRole(kernel)->body));
  if (!keys)
    return {};
  // As share_seen_keys (ops/split.h) counts them.
  const Expr last = max(min(shared->end, variable(RunValue::SeqKv)), shared->first);
  const Expr first = floorDiv(shared->first, keys);
  Expr tiles = ceilDiv(last, keys) - first;
  if (shared->gapBegin) {
    const Expr gap = max(ceilDiv(shared->gapBegin, keys), first);
    tiles = tiles - max(floorDiv(min(shared->gapEnd, last), keys) - gap, constant(0));
  }
  return sizeProgram(kernel, expand(kernel, tiles)).value_or(std::vector<SelectOp>());
}
