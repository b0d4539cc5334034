// fagen: pass persist-tiles: CTAs that work on one tile of query rows after the other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What all roles do after the first barrier becomes a loop over the CTA's tiles, so that the copies of the next tile
// run under the end of this one. Positions of rings go on from tile to tile: `base`, carried by the loop, is the number
// of key tiles before. What has one slot, as Q: a second mbarrier says when everybody has multiplied with it for the
// last time. Every thread that does arrives there: without keys there is no product that would say that its group has
// seen Q come.
//
// Applies to roles, one of which copies for the others, where the option `grid` or the kernel's grid asks for it.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"
#include "fagen/Spec/Spec.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

class TilePersister {
public:
  TilePersister(Kernel &kernel, Role &load) : kernel(kernel), load(load) {}

  bool fits(ShapeCheck &shape) const {
    const bool hasGuards = llvm::any_of(kernel.buffers, [](const auto &buffer) { return buffer->guard.has_value(); });
    if (!shape.needs(hasGuards, "a guard of what role " + load.name + " copies"))
      return false;
    for (const Buffer *tile : heldTiles()) {
      const Buffer *const full = tile->guard->full;
      auto isFill = [&](const Op &op) { return isArrivalAt(op, full); };
      if (!shape.needs(!usersOf(full).empty(), "a role that uses %" + tile->name) ||
          !shape.needs(!full->isRing, "a tile of rows whose guard has an mbarrier of one slot") ||
          !shape.needs(firstOf(load.body, isFill) && firstOf(load.body, OpKind::Fence),
                       "a fence and an arrive at %" + full->name + " in role " + load.name))
        return false;
    }
    return shape.needs(lastLoop(load.body), "a loop that copies in role " + load.name) &&
           llvm::all_of(kernel.roles, [&](Role &role) {
             return shape.needs(headBarrier(role.body) != role.body.ops.end(),
                                "a barrier at the head of role " + role.name);
           });
  }

  void run() {
    turn = kernel.freshName("turn");
    base = kernel.freshName("base");
    tiles = kernel.freshName("cta_tiles");
    kernel.lets.push_back({tiles, variable(RunValue::TilesOfCta), "persist-tiles: tiles of query rows of this CTA"});
    held = heldTiles();
    for (Buffer *tile : held) {
      tile->guard->full->isRing = true;
      addEmpty(*tile);
    }
    steps = LoopOp(*lastLoop(load.body)).end();
    for (Role &role : kernel.roles)
      shift(role.body);
    for (const Guard *guard : guards)
      handOver(*guard);
    for (Role &role : kernel.roles)
      wrap(role.body);
  }

private:
  /// What is filled once a tile of rows: the buffers with a guard that are no rings.
  std::vector<Buffer *> heldTiles() const {
    std::vector<Buffer *> found;
    for (const std::unique_ptr<Buffer> &buffer : kernel.buffers)
      if (buffer->guard && !buffer->isRing)
        found.push_back(buffer.get());
    return found;
  }

  /// Tiles that arrive together are left together.
  void addEmpty(Buffer &tile) {
    tile.guard->leftBy = Actor::Thread;
    const auto known = llvm::find_if(held, [&](Buffer *other) { return fullOf(*other) == fullOf(tile); });
    if (*known != &tile) {
      tile.guard->empty = (*known)->guard->empty;
      return;
    }
    Buffer empty = *tile.guard->full;
    empty.name = kernel.freshName(tile.name + "_empty");
    tile.guard->empty = &kernel.addBuffer(std::move(empty));
    guards.push_back(&*tile.guard);
  }

  /// Ring positions go on from tile to tile; what is held is filled once a tile. What stands before the barrier names
  /// slots.
  void shift(Block &block) {
    for (std::unique_ptr<Op> &op : block.ops) {
      shift(op->body);
      for (Operand &operand : op->operands) {
        if (llvm::any_of(held, [&](const Buffer *tile) { return operand.buffer == tile->guard->full; }))
          operand.position = op->kind == OpKind::MbarrierInit ? constant(0) : variable(turn);
        else if (operand.position && operand.buffer->isRing && op->kind != OpKind::MbarrierInit)
          operand.position = variable(base) + operand.position;
      }
    }
  }

  /// The other roles that use what arrives at this mbarrier.
  std::vector<Role *> usersOf(const Buffer *full) const {
    std::vector<Role *> users;
    for (Role &role : kernel.roles)
      if (&role != &load && firstOf(role.body, [&](const Op &op) { return uses(op, full); }))
        users.push_back(&role);
    return users;
  }

  static bool uses(const Op &op, const Buffer *full) {
    auto names = [full](const Op &each) {
      return llvm::any_of(each.operands, [full](const Operand &operand) {
        return operand.buffer && !operand.buffer->isRing && fullOf(*operand.buffer) == full;
      });
    };
    bool found = names(op);
    walk(op.body, [&](const Op &inner) { found |= names(inner); });
    return found;
  }

  /// Complete by then is what a loop asks for, and a product when it has been waited for.
  static Ops::iterator behindUse(Ops &ops, Ops::iterator use) {
    auto isWait = [](const auto &op) { return op->kind == OpKind::MmaWait && MmaWaitOp(*op).pending() == 0; };
    const auto complete = (*use)->kind == OpKind::MmaIssue ? std::find_if(use, ops.end(), isWait) : use;
    return complete == ops.end() ? complete : complete + 1;
  }

  static bool isThreadFill(const Op &op, const Buffer *full) {
    return isThreadAsyncCopy(op) && fullOf(*CopyIssueOp(op).dst().buffer) == full;
  }

  void handOver(const Guard &guard) {
    Buffer *const full = guard.full, *const empty = guard.empty;
    auto fills =
        llvm::find_if(load.body.ops, [&](const auto &op) { return isArrivalAt(*op, full) || isThreadFill(*op, full); });
    load.body.ops.insert(fills, makeWait({.bar = {empty, variable(turn) - constant(1)},
                                          .by = guard.filledBy.value_or(Actor::Role),
                                          .location = empty->location,
                                          .note = "persist-tiles: everybody has left the last tile's Q"}));
    unsigned arrivals = 0;
    for (Role *user : usersOf(full)) {
      leave(user->body, guard);
      arrivals += kLanes * user->warps;
    }
    auto fence = llvm::find_if(load.body.ops, [](const auto &op) { return op->kind == OpKind::Fence; });
    load.body.ops.insert(
        fence, makeMbarrierInit({.bar = {empty, constant(0)}, .arrivals = arrivals, .location = empty->location}));
  }

  /// After the last use of it.
  void leave(Block &body, const Guard &guard) const {
    Buffer *const empty = guard.empty;
    auto last = llvm::find_if(llvm::reverse(body.ops), [&](const auto &op) { return uses(*op, guard.full); });
    body.ops.insert(behindUse(body.ops, last.base() - 1), makeArrive({.bar = {empty, variable(turn)},
                                                                      .by = Actor::Thread,
                                                                      .location = empty->location,
                                                                      .note = "persist-tiles: the thread has left Q"}));
  }

  /// What stands after the barrier becomes the loop's body.
  void wrap(Block &body) const {
    const auto barrier = headBarrier(body);
    auto loop = makeLoop({.variable = turn,
                          .begin = constant(0),
                          .end = variable(tiles),
                          .carry = base,
                          .step = steps,
                          .name = "tiles",
                          .location = kernel.location});
    for (auto op = barrier + 1; op != body.ops.end(); ++op)
      loop->body.ops.push_back(std::move(*op));
    body.ops.erase(barrier + 1, body.ops.end());
    body.ops.push_back(std::move(loop));
  }

  Kernel &kernel;
  Role &load;
  std::vector<Buffer *> held;
  std::vector<const Guard *> guards; ///< of these, those that arrive together once
  Expr steps;                        ///< of a turn: so far do ring positions go on
  std::string turn, base, tiles;     ///< the loop's variable, what it carries, and the let that counts turns
};

} // namespace

bool fagen::persistTiles(Kernel &kernel, PassContext &context) {
  const auto fillers = fillersOf(kernel);
  if (fillers.empty())
    return false;
  Role &load = *fillers.front();
  const bool isAsked =
      valueOr(kernel.options.grid, Grid::Tiles) != Grid::Tiles || (kernel.grid.isPersistent && !turnsOf(load));
  if (!isAsked)
    return false;
  TilePersister persister(kernel, load);
  ShapeCheck shape(kernel, context, "persist-tiles");
  if (!shape.needs(fillers.size() == 1, "one role that copies for others: by its steps all roles count positions") ||
      !persister.fits(shape))
    return false;
  persister.run();
  kernel.grid.isPersistent = true;
  return true;
}
