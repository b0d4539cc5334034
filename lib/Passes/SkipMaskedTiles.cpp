// fagen: pass skip-masked-tiles: a warp group works on the key tiles that its own rows see.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With a mask the last rows of a tile see more keys than the first ones, and a warp group has 64 of them. Its loops end
// where its own rows see nothing more, and mask nothing where they see all; copies are those of the CTA as before. So
// that each slot is left by all groups, a group waits for the tiles that it skips, and leaves them:
//
//   math   loop j = own_key_tiles to key_tiles     after the last product
//            wait    k_full[j], v_full[j]  by every thread: phases are counted by a single bit
//            barrier of the group          all of its threads have seen the phase, before anybody ends it
//            arrive  k_empty[j], v_empty[j]
//
// Only where it pays: where in some tile of a square problem a group skips a key tile. And only where it skips no more
// of them than a ring has slots: it leaves those of a tile when both K and V are there and its turns are passed on, and
// by then others may wait for the tiles after.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"

#include <limits>

using namespace fagen;
using namespace fagen::ir;

namespace {

/// The most key tiles that the first warp group can skip relative to the last one, over all tiles whose first row is a
/// multiple of `step`, where row q sees the keys up to q. Trying as many tiles as a key tile has keys covers every
/// alignment.
int64_t mostSkippedKeyTiles(const Kernel &kernel, ConstMask mask, int64_t rows, unsigned groups, int64_t step) {
  const Expr keys = keysOf(kernel, mask);
  auto seenBy = [&](int64_t count) {
    return expand(kernel, tilesSeen(boundsOf(kernel, mask, mask.row(), count), keys));
  };
  const Expr all = seenBy(rows), own = seenBy(rows / groups);
  int64_t most = 0;
  for (int64_t tile = 0; tile < constantOf(kernel, keys); ++tile) {
    auto value = [&](llvm::StringRef name) -> std::optional<int64_t> {
      constexpr int64_t kManyKeys = 1 << 30;
      const RunValueInfo *const info = findRunValue(name);
      if (info && info->kind == RunKind::Length)
        return kManyKeys;
      return info && info->value == RunValue::RowBegin ? tile * step : 1;
    };
    most = std::max(most, all.evaluate(value).value_or(0) - own.evaluate(value).value_or(0));
  }
  return most;
}

class TileSkipper {
public:
  TileSkipper(Kernel &kernel, llvm::ArrayRef<Role *> fillers, Role &math, ShapeCheck &shape)
      : kernel(kernel), math(math), shape(shape), groups(math.warps / kGroupWarps) {
    for (const Role *load : fillers)
      for (const Buffer *ring : ringsFilledBy(*load))
        if (reads(ring))
          rings.push_back(ring);
  }

  bool run() {
    const auto mask = findMask(math.body);
    const bool isLast = math.firstWarp + math.warps == kernel.threads / 32; // whose groups know their rows
    if (!isLast || groups < 2 || !mask || !keysOf(kernel, *mask))
      return false;
    const int64_t rows = scoresOf(kernel, math, *mask).rows;
    keys = keysOf(kernel, *mask);
    if (!findTiles(boundsOf(kernel, *mask, mask->row(), rows)) || !groupsSkipKeyTiles(kernel, math, *mask, groups) ||
        mostSkippedKeyTiles(kernel, *mask, rows, groups, /*step=*/1) > fewestSlots() || !fits())
      return false;
    addLets(boundsOf(kernel, *mask, mask->row() + variable(RunValue::GroupRow), rows / groups));
    limit(math.body);
    dropUnused();
    auto last = llvm::find_if(llvm::reverse(math.body.ops), [](const auto &op) { return op->kind == OpKind::Loop; });
    math.body.ops.insert(last.base(), skip());
    return true;
  }

private:
  bool reads(const Buffer *ring) const {
    bool found = false;
    walk(std::as_const(math.body), [&](const Op &op) {
      found |= llvm::any_of(op.operands, [&](const Operand &operand) { return operand.buffer == ring; });
    });
    return found;
  }

  int64_t fewestSlots() const {
    int64_t fewest = std::numeric_limits<int64_t>::max();
    for (const Buffer *ring : rings)
      fewest = std::min(fewest, int64_t(ring->stages));
    return fewest;
  }

  /// Whether math leaves each slot that others fill for it.
  bool fits() const {
    bool leavesAll = true;
    for (const Buffer *ring : rings) {
      bool leaves = false;
      walk(std::as_const(math.body), [&](const Op &op) { leaves |= isArrivalAt(op, emptyOf(*ring)); });
      leavesAll &= emptyOf(*ring) && leaves;
    }
    return shape.needs(lastLoop(math.body), "a loop in role " + math.name) &&
           shape.needs(leavesAll, "role " + math.name + " to leave the slots of each ring that is filled");
  }

  /// The lets that count key tiles for all rows of the tile, by what they count.
  bool findTiles(const MaskBounds &bounds) {
    const Let *const full = letWith(kernel, tilesSeenWhole(bounds, keys));
    const Let *const all = letWith(kernel, tilesSeen(bounds, keys));
    if (!full || !all)
      return false;
    fullTiles = full->name;
    keyTiles = all->name;
    return true;
  }

  /// Those of the group's own rows.
  void addLets(const MaskBounds &bounds) {
    ownFullTiles = kernel.freshName("own_" + fullTiles);
    ownKeyTiles = kernel.freshName("own_" + keyTiles);
    kernel.lets.push_back({ownFullTiles, tilesSeenWhole(bounds, keys),
                           "skip-masked-tiles: key tiles that every row of the group sees whole"});
    kernel.lets.push_back(
        {ownKeyTiles, tilesSeen(bounds, keys), "skip-masked-tiles: key tiles that some row of the group sees"});
  }

  /// The loops of math end where the rows of the group do.
  void limit(Block &block) const {
    for (std::unique_ptr<Op> &op : block.ops) {
      substitute(*op, fullTiles, variable(ownFullTiles));
      substitute(*op, keyTiles, variable(ownKeyTiles));
    }
  }

  /// The CTA's full tiles, where nobody asks for them any more.
  void dropUnused() const {
    llvm::StringSet<> name;
    name.insert(fullTiles);
    if (llvm::none_of(kernel.roles, [&](const Role &role) { return usesAny(role, name); }))
      llvm::erase_if(kernel.lets, [&](const Let &let) { return let.name == fullTiles; });
  }

  std::unique_ptr<Op> skip() const {
    const std::string step = LoopOp(*lastLoop(math.body)).variable().str();
    const Expr tile = variable(step);
    auto loop = makeLoop({.variable = step,
                          .begin = variable(ownKeyTiles),
                          .end = variable(keyTiles),
                          .name = "skipped",
                          .about = "Key tile " + step + ", of which the rows of the group see nothing",
                          .location = kernel.location});
    Ops &ops = loop->body.ops;
    Ops arrivals;
    for (const Buffer *ring : rings) {
      ops.push_back(makeWait({.bar = {fullOf(*ring), tile},
                              .by = Actor::Thread,
                              .location = kernel.location,
                              .note = "skip-masked-tiles: the tile is there"}));
      arrivals.push_back(makeArrive({.bar = {emptyOf(*ring), tile},
                                     .by = ring->guard->leftBy,
                                     .location = kernel.location,
                                     .note = "skip-masked-tiles: they need it no more"}));
    }
    ops.push_back(makeBarrier({.scope = BarrierScope::Named,
                               .id = kGroupBarrier,
                               .firstWarp = math.firstWarp,
                               .warps = math.warps,
                               .groups = groups,
                               .location = kernel.location,
                               .note = "skip-masked-tiles: all threads of the group have seen it"}));
    llvm::move(arrivals, std::back_inserter(ops));
    return loop;
  }

  Kernel &kernel;
  Role &math;
  ShapeCheck &shape;
  const unsigned groups;
  llvm::SmallVector<const Buffer *, 4> rings;                 ///< that others fill, and math reads
  Expr keys;                                                  ///< of a tile
  std::string fullTiles, keyTiles, ownFullTiles, ownKeyTiles; ///< lets
};

} // namespace

bool fagen::groupsSkipKeyTiles(const Kernel &kernel, const Role &role, ConstMask mask, unsigned groups) {
  const int64_t rows = scoresOf(kernel, role, mask).rows;
  return mostSkippedKeyTiles(kernel, mask, rows, groups, rows) > 0;
}

bool fagen::skipMaskedTiles(Kernel &kernel, PassContext &context) {
  const auto fillers = fillersOf(kernel);
  if (fillers.empty())
    return false;
  ShapeCheck shape(kernel, context, "skip-masked-tiles");
  bool hasChanged = false;
  for (Role *math : multipliersBeside(kernel, fillers))
    hasChanged |= TileSkipper(kernel, fillers, *math, shape).run();
  return hasChanged;
}
