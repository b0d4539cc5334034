// fagen: pass order-roles: who waits for whom at which mbarrier.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each buffer that bulk copies fill has an mbarrier that counts their bytes; a ring gets a second one, `_empty`, that
// counts the warp groups that have left a slot. From where a buffer is filled and read follows
//
//   load   wait    k_empty[j - S]  by one thread: everybody has left the slot's last tile
//          arrive  k_full[j]       announces the bytes
//          copy_issue k[j]
//   math   wait    k_full[j]       before the first product that reads k[j]
//          mma_issue ... k[j]
//          mma_wait
//          arrive  k_empty[j - .]  behind the wait that completes that product, one thread of each group
//
// Where warps read a slot by themselves once more (settle_rows) one thread of each warp arrives, behind a barrier of
// the warp.
//
// One thread makes the mbarriers, and a barrier of the CTA tells all. place-barriers and verify-barriers then prove
// from the ops alone that this orders every access and that nobody waits for ever.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

class RoleOrderer {
public:
  RoleOrderer(Kernel &kernel, Role &load, Role &math) : kernel(kernel), load(load), math(math) {}

  void run() {
    collectCopies(load.body);
    for (const auto &[buffer, full] : filled) {
      if (!buffer->guard)
        buffer->guard = {.full = full, .filledBy = {}};
      if (!buffer->isRing)
        continue;
      buffer->guard->empty = empties[buffer] = addEmpty(*buffer, *full);
      buffer->guard->leftBy = isLeftByWarps(buffer) ? Actor::Warp : Actor::Group;
    }
    announceCopies(load.body);
    waitForCopies(math.body);
    beginMath();
    beginLoad();
  }

private:
  void collectCopies(const Block &block) {
    forEach<CopyIssueOp>(block,
                         [&](CopyIssueOp<const Op> copy) { filled.insert({copy.dst().buffer, copy.full().buffer}); });
  }

  Buffer *addEmpty(const Buffer &ring, const Buffer &full) {
    Buffer empty;
    empty.name = kernel.freshName(ring.name + "_empty");
    empty.type = ElementType::MBarrier;
    empty.rows = empty.columns = 1;
    empty.isRing = true;
    empty.stages = ring.stages;
    empty.location = full.location;
    return &kernel.addBuffer(std::move(empty));
  }

  void announceCopies(Block &block) {
    rewrite(block, [&](std::unique_ptr<Op> op, Ops &ops) {
      if (const auto copy = dynCast<CopyIssueOp>(*op))
        announce(*copy, ops);
      ops.push_back(std::move(op));
    });
  }

  void announce(CopyIssueOp<> copy, Ops &ops) {
    const Operand &target = copy.dst();
    if (target.buffer->isRing)
      ops.push_back(makeWait({.bar = {empties[target.buffer], target.position - variable("kStages")},
                              .by = Actor::Role,
                              .location = copy->location,
                              .note = "order-roles: everybody has left the slot"}));
    ops.push_back(makeArrive({.bar = {copy.full().buffer, target.position},
                              .by = Actor::Role,
                              .bytes = constant(int64_t(target.buffer->stageBytes())),
                              .location = copy->location}));
  }

  /// A product that no wait has completed yet.
  struct Running {
    Buffer *ring;
    Expr position;
    unsigned group; ///< the number of its commit
  };

  /// The slot that the lanes of a warp read, behind a product that did.
  static const Operand *readByWarps(const Op &op) {
    const auto settle = dynCast<SettleRowsOp>(op);
    return settle ? &settle->k() : nullptr;
  }

  bool isLeftByWarps(const Buffer *ring) const {
    bool isRead = false;
    walk(math.body, [&](const Op &op) { isRead |= readByWarps(op) && readByWarps(op)->buffer == ring; });
    return isRead;
  }

  /// By the ops of a block that have not been moved yet.
  static bool isReadBelow(const Ops &ops, const Buffer *ring) {
    return llvm::any_of(
        ops, [&](const std::unique_ptr<Op> &op) { return op && readByWarps(*op) && readByWarps(*op)->buffer == ring; });
  }

  void leave(Ops &ops, Buffer *ring, Expr position, const Location &location) {
    const Actor who = ring->guard->leftBy;
    ops.push_back(makeArrive({.bar = {empties[ring], position},
                              .by = who,
                              .location = location,
                              .note = ("order-roles: the " + toString(who) + " has left the slot").str()}));
  }

  void leaveByLanes(Ops &ops, const Operand &slot, const Location &location) {
    ops.push_back(makeBarrier(
        {.scope = BarrierScope::Warp, .location = location, .note = "order-roles: all lanes have read the slot"}));
    ops.push_back(makeArrive({.bar = {empties[slot.buffer], slot.position}, .by = Actor::Warp, .location = location}));
  }

  void waitForCopies(Block &block) {
    Ops ops;
    llvm::SmallVector<Running, 4> running;
    unsigned commits = 0;
    for (std::unique_ptr<Op> &op : block.ops) {
      waitForCopies(op->body);
      if (const auto product = dynCast<MmaIssueOp>(*op))
        waitBefore(*product, ops, running, commits);
      commits += op->kind == OpKind::MmaCommit;
      const auto wait = dynCast<MmaWaitOp>(*op);
      const int64_t done = wait ? int64_t(commits) - wait->pending() : 0;
      const Location location = op->location;
      const Operand *const again = readByWarps(*op);
      ops.push_back(std::move(op));
      if (again)
        leaveByLanes(ops, *again, location);
      for (const Running &product : running)
        if (product.group < done && !isReadBelow(block.ops, product.ring))
          leave(ops, product.ring, product.position, location);
      llvm::erase_if(running, [&](const Running &product) { return product.group < done; });
    }
    block.ops = std::move(ops);
  }

  /// The wait stands in front of the fence, so that nothing comes between that and the product.
  void waitBefore(MmaIssueOp<> product, Ops &ops, llvm::SmallVectorImpl<Running> &running, unsigned commits) {
    const Operand &b = product.b();
    running.push_back({b.buffer, b.position, commits});
    std::unique_ptr<Op> fence;
    if (!ops.empty() && ops.back()->kind == OpKind::Fence) {
      fence = std::move(ops.back());
      ops.pop_back();
    }
    ops.push_back(waitForTile(filled.lookup(b.buffer), b.position, product->location));
    if (fence)
      ops.push_back(std::move(fence));
  }

  static std::unique_ptr<Op> waitForTile(Buffer *full, Expr position, const Location &location) {
    return makeWait({.bar = {full, std::move(position)},
                     .by = Actor::Thread,
                     .location = location,
                     .note = "order-roles: the tile has arrived"});
  }

  void addBarrier(Ops &ops) {
    ops.push_back(makeBarrier(
        {.scope = BarrierScope::Cta, .location = kernel.location, .note = "order-roles: the mbarriers are there"}));
  }

  /// Buffers that are no rings are filled once.
  void beginMath() {
    Ops ops;
    addBarrier(ops);
    for (std::unique_ptr<Op> &op : math.body.ops) {
      if (op->kind == OpKind::Loop && !hasWaited)
        for (const auto &[buffer, full] : filled)
          if (!buffer->isRing)
            ops.push_back(waitForTile(full, {}, full->location));
      hasWaited |= op->kind == OpKind::Loop;
      ops.push_back(std::move(op));
    }
    math.body.ops = std::move(ops);
  }

  void initialise(Ops &ops, Buffer *bar, unsigned arrivals) {
    for (unsigned slot = 0; slot < bar->stages; ++slot)
      ops.push_back(makeMbarrierInit(
          {.bar = {bar, bar->isRing ? constant(slot) : Expr()}, .arrivals = arrivals, .location = bar->location}));
  }

  void beginLoad() {
    Ops ops;
    for (const auto &[buffer, full] : filled)
      initialise(ops, full, 1);
    for (const auto &[ring, empty] : empties)
      initialise(ops, empty, ring->guard->leftBy == Actor::Warp ? math.warps : math.warps / kGroupWarps);
    ops.push_back(makeFence({.kind = FenceKind::MbarrierInit, .location = kernel.location}));
    addBarrier(ops);
    for (std::unique_ptr<Op> &op : load.body.ops)
      ops.push_back(std::move(op));
    load.body.ops = std::move(ops);
  }

  Kernel &kernel;
  Role &load, &math;
  llvm::MapVector<Buffer *, Buffer *> filled;  ///< by bulk copies, and the mbarriers that count their bytes
  llvm::MapVector<Buffer *, Buffer *> empties; ///< of the rings
  bool hasWaited = false;
};

bool isSync(const Op &op) {
  return op.kind == OpKind::Wait || op.kind == OpKind::Arrive || op.kind == OpKind::MbarrierInit;
}

/// Whether waits of the block itself complete its products.
bool endsItsProducts(const Block &block) {
  llvm::SmallVector<int64_t, 4> running; // the commits before each
  int64_t commits = 0;
  for (const std::unique_ptr<Op> &op : block.ops) {
    if (op->kind == OpKind::MmaIssue)
      running.push_back(commits);
    commits += op->kind == OpKind::MmaCommit;
    if (const auto wait = dynCast<MmaWaitOp>(*op))
      llvm::erase_if(running, [&](int64_t group) { return group < commits - wait->pending(); });
    if (!endsItsProducts(op->body))
      return false;
  }
  return running.empty();
}

bool fits(const Role &load, const Role &math, ShapeCheck &shape) {
  llvm::SmallPtrSet<const Buffer *, 4> filled, rings;
  bool isInOrder = false, isBulk = true, isFilled = true;
  walk(load.body, [&](const Op &op) {
    isInOrder |= isSync(op);
    const auto copy = dynCast<CopyIssueOp>(op);
    if (!copy)
      return;
    isBulk &= copy->full().buffer != nullptr;
    filled.insert(copy->dst().buffer);
    if (copy->dst().buffer->isRing)
      rings.insert(copy->dst().buffer);
  });
  walk(math.body, [&](const Op &op) {
    isInOrder |= isSync(op);
    isBulk &= op.kind != OpKind::CopyIssue;
    if (const auto product = dynCast<MmaIssueOp>(op))
      isFilled &= filled.contains(product->b().buffer);
    if (const auto settle = dynCast<SettleRowsOp>(op))
      isFilled &= rings.contains(settle->k().buffer);
  });
  return shape.needs(!isInOrder, "roles that no mbarrier orders yet") &&
         shape.needs(isBulk, "bulk copies only, all in role " + load.name) &&
         shape.needs(isFilled, "products of buffers that role " + load.name + " fills") &&
         shape.needs(endsItsProducts(math.body), "products that are complete where their block ends");
}

} // namespace

bool fagen::orderRoles(Kernel &kernel, PassContext &context) {
  const auto roles = findLoadAndMath(kernel);
  if (!roles)
    return false;
  ShapeCheck shape(kernel, context, "order-roles");
  if (!fits(roles->load, roles->math, shape))
    return false;
  RoleOrderer(kernel, roles->load, roles->math).run();
  return true;
}
