// fagen: pass persist-tiles: CTAs that work on one tile of query rows after the other.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What both roles do behind the first barrier becomes a loop over the CTA's tiles, so that the copies of the next tile
// run under the end of this one. Positions of rings go on from tile to tile: `base`, carried by the loop, is the number
// of key tiles before. Q has one slot: a second mbarrier says when everybody has multiplied with it for the last time.
// Every thread arrives there: without keys there is no product that would say that its group has seen Q come.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"
#include "fagen/Spec/Spec.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

constexpr unsigned kLanes = 32;

class TilePersister {
public:
  TilePersister(Kernel &kernel, Role &load, Role &math) : kernel(kernel), load(load), math(math) {}

  bool fits(ShapeCheck &shape) const {
    const Buffer *const full = kernel.buffer("q_full");
    auto isFill = [&](const Op &op) { return isArrivalAt(op, full); };
    return shape.needs(full && !full->isRing, "an mbarrier %q_full of one slot that is filled once") &&
           shape.needs(firstOf(load.body, isFill) && firstOf(load.body, OpKind::Fence),
                       "a fence and an arrive at %q_full in role " + load.name) &&
           shape.needs(firstOf(load.body, OpKind::Barrier) && firstOf(math.body, OpKind::Barrier),
                       "a barrier at the head of both roles") &&
           shape.needs(firstOf(math.body, isLoopOverQ), "a loop in role " + math.name + " that multiplies with Q");
  }

  void run() {
    kernel.lets.push_back({"cta_tiles", variable("tiles_of_cta"), "persist-tiles: tiles of query rows of this CTA"});
    qFull = kernel.buffer("q_full");
    qFull->isRing = true;
    addEmpty();
    for (Role *role : {&load, &math})
      shift(role->body);
    handOverQ();
    wrap(load.body);
    wrap(math.body);
  }

private:
  void addEmpty() {
    Buffer empty = *qFull;
    empty.name = "q_empty";
    qEmpty = &kernel.addBuffer(std::move(empty));
  }

  /// Ring positions go on from tile to tile; Q is filled once a tile. What stands before the barrier names slots.
  void shift(Block &block) {
    for (std::unique_ptr<Op> &op : block.ops) {
      shift(op->body);
      for (Operand &operand : op->operands) {
        if (operand.buffer == qFull)
          operand.position = op->kind == OpKind::MbarrierInit ? constant(0) : variable("turn");
        else if (operand.position && op->kind != OpKind::MbarrierInit)
          operand.position = variable("base") + operand.position;
      }
    }
  }

  static bool isLoopOverQ(const Op &loop) {
    bool reads = false;
    forEach<MmaIssueOp>(loop.body,
                        [&](MmaIssueOp<const Op> product) { reads |= product.a().buffer->space == Space::Shared; });
    return reads && loop.kind == OpKind::Loop;
  }

  void handOverQ() {
    auto fills = llvm::find_if(load.body.ops, [&](const auto &op) { return isArrivalAt(*op, qFull); });
    load.body.ops.insert(fills, makeWait({.bar = {qEmpty, variable("turn") - constant(1)},
                                          .by = Actor::Role,
                                          .location = qEmpty->location,
                                          .note = "persist-tiles: everybody has left the last tile's Q"}));
    auto last = llvm::find_if(llvm::reverse(math.body.ops), [](const auto &op) { return isLoopOverQ(*op); });
    math.body.ops.insert(last.base(), makeArrive({.bar = {qEmpty, variable("turn")},
                                                  .by = Actor::Thread,
                                                  .location = qEmpty->location,
                                                  .note = "persist-tiles: the thread has left Q"}));
    auto fence = llvm::find_if(load.body.ops, [](const auto &op) { return op->kind == OpKind::Fence; });
    load.body.ops.insert(
        fence, makeMbarrierInit(
                   {.bar = {qEmpty, constant(0)}, .arrivals = kLanes * math.warps, .location = qEmpty->location}));
  }

  /// What stands behind the barrier becomes the loop's body.
  void wrap(Block &body) const {
    auto barrier = llvm::find_if(body.ops, [](const auto &op) { return op->kind == OpKind::Barrier; });
    auto loop = makeLoop({.variable = "turn",
                          .begin = constant(0),
                          .end = variable("cta_tiles"),
                          .carry = "base",
                          .step = variable("key_tiles"),
                          .name = "tiles",
                          .location = kernel.location});
    for (auto op = barrier + 1; op != body.ops.end(); ++op)
      loop->body.ops.push_back(std::move(*op));
    body.ops.erase(barrier + 1, body.ops.end());
    body.ops.push_back(std::move(loop));
  }

  Kernel &kernel;
  Role &load, &math;
  Buffer *qFull = nullptr, *qEmpty = nullptr;
};

} // namespace

bool fagen::persistTiles(Kernel &kernel, PassContext &context) {
  const bool isAsked = valueOr(kernel.options.grid, Grid::Tiles) != Grid::Tiles;
  if (!isAsked || kernel.roles.size() != 2)
    return false;
  TilePersister persister(kernel, kernel.roles[0], kernel.roles[1]);
  ShapeCheck shape(kernel, context, "persist-tiles");
  if (!persister.fits(shape))
    return false;
  persister.run();
  return true;
}
