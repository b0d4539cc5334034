// fagen: pass settle-rows: interior steps take no row maximum while the old one will do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With rescale = optimistic a rotated step (issue-products) computes its terms by the maximum of the tiles before.
// Their sums, which are wanted anyway, tell where that was too small: no term is larger than its row's sum.
//
//   before   row_max m_new; rescale_rows alpha, l, m; exp2 s; row_sum l   ...   rescale_output o
//   after    exp2 s; settle_rows s, alpha, l, m, from q and k             ...   rescale_output o, only if redone
//
// settle_rows does the step again where it has to, by products of the warp alone: the scores are gone, Q and K are not.
// The first step takes its maximum as ever. So do masked steps of three warp groups: what they would keep to mask again
// is more than their threads have registers for.

#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

using Ops = std::vector<std::unique_ptr<Op>>;

class RowSettler {
public:
  explicit RowSettler(Op &loop) : ops(loop.body.ops) {}

  void run() {
    const Op &rescale = *find(OpKind::RescaleRows), &product = *find(OpKind::MmaIssue);
    Op &sum = *find(OpKind::RowSum);
    auto settle = std::make_unique<Op>(OpKind::SettleRows);
    settle->operands = {sum.operand("s"),     rescale.operand("alpha"), rescale.operand("l"),
                        rescale.operand("m"), product.operand("a"),     product.operand("b")};
    settle->location = rescale.location;
    settle->note = "settle-rows: again, where a row has outgrown that";
    if (position(OpKind::Mask) != ops.end())
      for (const char *name : {"predicate", "row", "key"})
        settle->attributes[name] = find(OpKind::Mask)->expr(name);
    Op &terms = *find(OpKind::Exp2);
    terms.attributes["guard"] = int64_t(0); // a row without a maximum has no number, and is found by that
    terms.note = "online softmax; settle-rows: by the maximum of the tiles before";
    *position(OpKind::RowSum) = std::move(settle);
    ops.erase(position(OpKind::RowMax));
    ops.erase(position(OpKind::RescaleRows));
    find(OpKind::RescaleOutput)->attributes["redone"] = int64_t(1);
  }

private:
  /// The first one: of products the scores'.
  Ops::iterator position(OpKind kind) {
    return llvm::find_if(ops, [&](const std::unique_ptr<Op> &op) { return op->kind == kind; });
  }
  Op *find(OpKind kind) { return position(kind)->get(); }

  Ops &ops;
};

bool hasOp(const Op &loop, OpKind kind) {
  return llvm::any_of(loop.body.ops, [&](const std::unique_ptr<Op> &op) { return op->kind == kind; });
}

/// Whether it is a rotated step, and asks for that.
bool isOptimistic(const Op &loop) {
  return hasOp(loop, OpKind::RescaleOutput) && llvm::any_of(loop.body.ops, [](const std::unique_ptr<Op> &op) {
           return op->kind == OpKind::RescaleRows && op->isSet("optimistic");
         });
}

/// Whether a group's threads can keep what masks a step, too.
bool hasRegisters(const Role &math) { return math.warps / kGroupWarps < 3; }

bool isStep(const Op &loop) {
  constexpr OpKind kStep[] = {OpKind::MmaIssue, OpKind::RowMax, OpKind::Exp2, OpKind::RowSum};
  return llvm::all_of(kStep, [&](OpKind kind) { return hasOp(loop, kind); });
}

} // namespace

bool fagen::settleRows(Kernel &kernel, PassContext &context) {
  ShapeCheck shape(kernel, context, "settle-rows");
  bool hasChanged = false;
  for (Role &role : kernel.roles)
    for (const std::unique_ptr<Op> &op : role.body.ops)
      if (op->kind == OpKind::Loop && isOptimistic(*op) && (!hasOp(*op, OpKind::Mask) || hasRegisters(role))) {
        if (!shape.needs(isStep(*op), "the products and the whole softmax in a loop that is optimistic", op->location))
          return hasChanged;
        RowSettler(*op).run();
        hasChanged = true;
      }
  return hasChanged;
}
