// fagen: pass skip-masked-tiles: a warp group works on the key tiles that its own rows see.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With a mask the last rows of a tile see more keys than the first ones, and a warp group has 64 of them. Its loops end
// where its own rows see nothing more, and mask nothing where they see all; copies are those of the CTA as before. So
// that each slot is left by all groups, a group waits for the tiles that it skips, and leaves them:
//
//   math   loop j = own_key_tiles to key_tiles     behind the last product
//            wait    k_full[j], v_full[j]  by every thread: phases are counted by a single bit
//            barrier of the group          all of its threads have seen the phase, before anybody ends it
//            arrive  k_empty[j], v_empty[j]
//
// Only where it pays: where in some tile of a square problem a group skips a key tile. And only where it skips no more
// of them than a ring has slots: it leaves those of a tile when both K and V are there and its turns are passed on, and
// by then others may wait for the tiles behind.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// How many key tiles the first group sees fewer than the last one, at most, of tiles whose first rows are multiples of
/// `step`, where row q sees the keys up to q. As many of them as a key tile has keys lie to the key tiles in all ways.
int64_t mostSkippedKeyTiles(const Kernel &kernel, MaskOp<const Op> mask, unsigned groups, int64_t step) {
  const int64_t rows = kernel.constant("kTileRows"), keys = kernel.constant("kTileKeys");
  auto tilesSeen = [&](int64_t count) {
    const MaskBounds bounds = analyzeMask(mask.predicate(), "q", "k", mask.row(), count);
    return expand(kernel, ceilDiv(max(bounds.keyEnd, constant(0)), variable("kTileKeys")));
  };
  const Expr all = tilesSeen(rows), own = tilesSeen(rows / groups);
  int64_t most = 0;
  for (int64_t tile = 0; tile < keys; ++tile) {
    auto value = [&](llvm::StringRef name) -> std::optional<int64_t> {
      constexpr int64_t kManyKeys = 1 << 30;
      return name == "row_begin" ? tile * step : name.starts_with("seq_") ? kManyKeys : 1;
    };
    most = std::max(most, all.evaluate(value).value_or(0) - own.evaluate(value).value_or(0));
  }
  return most;
}

class TileSkipper {
public:
  TileSkipper(Kernel &kernel, const Role &load, Role &math, ShapeCheck &shape)
      : kernel(kernel), load(load), math(math), shape(shape), groups(math.warps / kGroupWarps) {}

  bool run() {
    const auto mask = findMask();
    if (groups < 2 || !mask || !findLet("full_tiles"))
      return false;
    if (!groupsSkipKeyTiles(kernel, *mask, groups))
      return false;
    if (mostSkippedKeyTiles(kernel, *mask, groups, /*step=*/1) > kernel.constant("kStages"))
      return false;
    if (!fits())
      return false;
    addLets(analyzeMask(mask->predicate(), "q", "k", mask->row() + variable(kGroupRow),
                        kernel.constant("kTileRows") / groups));
    llvm::erase_if(kernel.lets, [](const Let &let) { return let.name == "full_tiles"; });
    limit(math.body);
    auto last = llvm::find_if(llvm::reverse(math.body.ops), [](const auto &op) { return op->kind == OpKind::Loop; });
    math.body.ops.insert(last.base(), skip());
    return true;
  }

private:
  /// Whether math leaves each slot that the load role fills.
  bool fits() const {
    bool leavesAll = true;
    forEach<CopyIssueOp>(load.body, [&](CopyIssueOp<const Op> copy) {
      if (!copy.dst().buffer->isRing)
        return;
      const Buffer *empty = kernel.buffer(copy.dst().buffer->name + "_empty");
      leavesAll &= copy.full().buffer && empty && whoArrivesAt(empty);
    });
    return shape.needs(leavesAll, "role " + math.name + " to arrive at an mbarrier _empty of each ring");
  }

  std::optional<MaskOp<const Op>> findMask() const {
    std::optional<MaskOp<const Op>> found;
    forEach<MaskOp>(std::as_const(math.body), [&](MaskOp<const Op> mask) { found = mask; });
    return found;
  }

  const Let *findLet(llvm::StringRef name) const {
    auto found = llvm::find_if(kernel.lets, [&](const Let &let) { return let.name == name; });
    return found == kernel.lets.end() ? nullptr : &*found;
  }

  void addLets(const MaskBounds &bounds) {
    const Expr keys = variable("kTileKeys"), zero = constant(0);
    kernel.lets.push_back({"own_full_tiles", floorDiv(max(bounds.fullEnd, zero), keys),
                           "skip-masked-tiles: key tiles that every row of the group sees whole"});
    kernel.lets.push_back({"own_key_tiles", ceilDiv(max(bounds.keyEnd, zero), keys),
                           "skip-masked-tiles: key tiles that some row of the group sees"});
  }

  /// The loops of math end where the rows of the group do.
  void limit(Block &block) const {
    for (std::unique_ptr<Op> &op : block.ops)
      for (const char *name : {"full_tiles", "key_tiles"})
        substitute(*op, name, variable(std::string("own_") + name));
  }

  /// At the mbarrier, in the steps.
  std::optional<Actor> whoArrivesAt(const Buffer *bar) const {
    std::optional<Actor> who;
    forEach<ArriveOp>(std::as_const(math.body), [&](ArriveOp<const Op> arrive) {
      if (arrive.bar().buffer == bar)
        who = arrive.by();
    });
    return who;
  }

  std::unique_ptr<Op> skip() const {
    const Expr tile = variable("j");
    auto loop = makeLoop({.variable = "j",
                          .begin = variable("own_key_tiles"),
                          .end = variable("key_tiles"),
                          .name = "skipped",
                          .location = kernel.location});
    Ops &ops = loop->body.ops;
    Ops arrivals;
    llvm::SmallPtrSet<const Buffer *, 2> rings;
    forEach<CopyIssueOp>(load.body, [&](CopyIssueOp<const Op> copy) {
      const Buffer *ring = copy.dst().buffer;
      if (!ring->isRing || !rings.insert(ring).second)
        return;
      Buffer *empty = kernel.buffer(ring->name + "_empty");
      ops.push_back(makeWait({.bar = {copy.full().buffer, tile},
                              .by = Actor::Thread,
                              .location = kernel.location,
                              .note = "skip-masked-tiles: the tile is there"}));
      arrivals.push_back(makeArrive({.bar = {empty, tile},
                                     .by = *whoArrivesAt(empty),
                                     .location = kernel.location,
                                     .note = "skip-masked-tiles: they need it no more"}));
    });
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
  const Role &load;
  Role &math;
  ShapeCheck &shape;
  const unsigned groups;
};

} // namespace

bool fagen::groupsSkipKeyTiles(const Kernel &kernel, MaskOp<const Op> mask, unsigned groups) {
  return mostSkippedKeyTiles(kernel, mask, groups, kernel.constant("kTileRows")) > 0;
}

bool fagen::skipMaskedTiles(Kernel &kernel, PassContext &context) {
  if (!kernel.hasConstant("kLoadWarps") || kernel.roles.size() != 2)
    return false;
  ShapeCheck shape(kernel, context, "skip-masked-tiles");
  return TileSkipper(kernel, kernel.roles[0], kernel.roles[1], shape).run();
}
