// fagen: pass strength-reduce-copies: copies of tiles that follow each other keep a running address.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The address of a row is its number times a stride of 64 bits, for every vector of a copy anew. Where a ring takes
// tiles 0, 1, 2, ... of a tensor one after the other, each copy can begin where the one before ended instead: the
// classic strength reduction of loops. The timelines prove the order. Needs copies that stay as they are; ensures that
// the copies of a ring are all `running`, or none.

#include "fagen/Passes/Passes.h"

#include "fagen/Analysis/Timeline.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// What is known of the copies into a ring.
struct RingCopies {
  std::vector<Op *> ops;
  bool inOrder = true; ///< whole tiles of one tensor to one limit, in every run 0, 1, 2, ...
};

class CopyReducer {
public:
  CopyReducer(Kernel &kernel, Role &role) : kernel(kernel), role(role) {}

  bool run() {
    collect(role.body);
    if (llvm::none_of(rings, [](const auto &ring) { return ring.second.inOrder; }))
      return false;
    const Points points(role);
    std::string problem; // place-barriers reports what cannot be analysed
    const bool isKnown =
        forEachTimeline(kernel, role, points, problem, [&](const Timeline &timeline) { checkOrder(timeline); });
    bool changed = false;
    for (auto &[buffer, copies] : rings)
      if (isKnown && copies.inOrder)
        for (Op *op : copies.ops) {
          op->attributes["running"] = int64_t(1);
          changed = true;
        }
    return changed;
  }

private:
  void collect(Block &block) {
    for (std::unique_ptr<Op> &op : block.ops) {
      collect(op->body);
      if (op->kind == OpKind::CopyIssue && op->operand("dst").buffer->isRing)
        add(*op);
    }
  }

  void add(Op &op) {
    RingCopies &copies = rings[op.operand("dst").buffer];
    copies.ops.push_back(&op);
    const Op &first = *copies.ops.front();
    const Expr tile = op.operand("dst").position * constant(op.operand("dst").buffer->rows);
    const Expr row = op.expr("row").substitute("kTileKeys", constant(op.operand("dst").buffer->rows));
    copies.inOrder &= row.str() == tile.str() && op.operand("src").buffer == first.operand("src").buffer &&
                      op.text("kind") == first.text("kind") && op.text("kind") != "bulk" &&
                      op.expr("limit").str() == first.expr("limit").str();
  }

  void checkOrder(const Timeline &timeline) {
    llvm::DenseMap<const Buffer *, int64_t> next;
    for (const Event &event : timeline.events) {
      if (!event.op || !event.active || event.op->kind != OpKind::CopyIssue)
        continue;
      auto ring = rings.find(event.op->operand("dst").buffer);
      if (ring != rings.end() && event.positions[0] != next[ring->first]++)
        ring->second.inOrder = false;
    }
  }

  Kernel &kernel;
  Role &role;
  llvm::MapVector<const Buffer *, RingCopies> rings;
};

} // namespace

bool fagen::strengthReduceCopies(Kernel &kernel, PassContext &) {
  bool changed = false;
  for (Role &role : kernel.roles)
    changed |= CopyReducer(kernel, role).run();
  return changed;
}
