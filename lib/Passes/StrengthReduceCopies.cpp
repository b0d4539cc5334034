// fagen: pass strength-reduce-copies: copies of tiles that follow each other keep a running address.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The address of a row is its number times a stride of 64 bits, for every vector of a copy anew. Where a ring takes
// tiles 0, 1, 2, ... of a tensor one after the other, each copy can begin where the one before ended instead: the
// classic strength reduction of loops. The timelines prove the order. Needs copies that stay as they are; ensures that
// the copies of a ring are all `running`, or none.

#include "fagen/IR/Queries.h"
#include "fagen/IR/Views.h"
#include "fagen/Passes/Passes.h"

#include "fagen/Analysis/Timeline.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// Whether each row of what it copies lies as far after the one before it, in all steps.
bool followsRows(const Op &copy) {
  const Operand &source = *globalOperandOf(copy);
  return source.buffer->shape.empty() || (!source.position && copiesWholeRows(copy));
}

/// What is known of the copies into a ring.
struct RingCopies {
  std::vector<CopyIssueOp<>> ops;
  bool inOrder = true; ///< whole tiles of one tensor to one limit, in every run 0, 1, 2, ...
};

class CopyReducer {
public:
  CopyReducer(Kernel &kernel, Role &role) : kernel(kernel), role(role) {}

  bool run() {
    forEach<CopyIssueOp>(role.body, [&](CopyIssueOp<> copy) {
      if (copy.dst().buffer->isRing)
        add(copy);
    });
    if (llvm::none_of(rings, [](const auto &ring) { return ring.second.inOrder; }))
      return false;
    const Points points(role);
    std::string problem; // place-barriers reports what cannot be analysed
    const bool isKnown =
        forEachTimeline(kernel, role, points, problem, [&](const Timeline &timeline) { checkOrder(timeline); });
    bool changed = false;
    for (auto &[buffer, copies] : rings)
      if (isKnown && copies.inOrder)
        for (const CopyIssueOp<> &copy : copies.ops) {
          copy.setRunning(true);
          changed = true;
        }
    return changed;
  }

private:
  void add(CopyIssueOp<> copy) {
    RingCopies &copies = rings[copy.dst().buffer];
    copies.ops.push_back(copy);
    const CopyIssueOp<> first = copies.ops.front();
    const bool mayRestart = kernel.roles.size() != 1 || kernel.grid.isPersistent;
    const Expr tile = copy.dst().position * constant(copy.dst().buffer->rows);
    copies.inOrder &= expand(kernel, copy.row()) == expand(kernel, tile) && copy.src().buffer == first.src().buffer &&
                      copy.kind() == first.kind() && copy.kind() != CopyKind::Bulk && !mayRestart &&
                      rowEndOf(*copy) == rowEndOf(*first) && followsRows(*copy);
  }

  void checkOrder(const Timeline &timeline) {
    llvm::DenseMap<const Buffer *, int64_t> next;
    for (const Event &event : timeline.events) {
      const auto copy = event.op && event.active ? dynCast<CopyIssueOp>(*event.op) : std::nullopt;
      if (!copy)
        continue;
      auto ring = rings.find(copy->dst().buffer);
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
