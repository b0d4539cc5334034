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

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// The product of the step that is added to the fragment; null where there is none, or more than one.
Op *productInto(const Ops &step, const Buffer *fragment) {
  Op *found = nullptr;
  unsigned count = 0;
  for (const std::unique_ptr<Op> &op : step)
    if (const auto product = dynCast<MmaIssueOp>(*op); product && product->acc().buffer == fragment) {
      found = op.get();
      ++count;
    }
  return count == 1 ? found : nullptr;
}

class RowSettler {
public:
  explicit RowSettler(Op &loop) : ops(loop.body.ops) {}

  void run() {
    *position(OpKind::RowSum) = makeSettled();
    Exp2Op terms(**position(OpKind::Exp2));
    terms.setGuard(false); // a row without a maximum has no number, and is found by that
    terms->note = "online softmax; settle-rows: by the maximum of the tiles before";
    ops.erase(position(OpKind::RowMax));
    ops.erase(position(OpKind::RescaleRows));
    RescaleOutputOp(**position(OpKind::RescaleOutput)).setRedone(true);
  }

private:
  std::unique_ptr<Op> makeSettled() {
    const RescaleRowsOp rescale(**position(OpKind::RescaleRows));
    const RowSumOp sum(**position(OpKind::RowSum));
    const MmaIssueOp product(*productInto(ops, sum.s().buffer));
    SettleRowsArgs args{.s = sum.s(),
                        .alpha = rescale.alpha(),
                        .l = rescale.l(),
                        .m = rescale.m(),
                        .q = product.a(),
                        .k = product.b(),
                        .location = rescale->location,
                        .note = "settle-rows: again, where a row has outgrown that"};
    if (const auto found = position(OpKind::Mask); found != ops.end()) {
      const MaskOp mask(**found);
      args.predicate = mask.predicate();
      args.row = mask.row();
      args.key = mask.key();
    }
    return makeSettleRows(std::move(args));
  }

  Ops::iterator position(OpKind kind) {
    return llvm::find_if(ops, [&](const std::unique_ptr<Op> &op) { return op->kind == kind; });
  }

  Ops &ops;
};

bool hasOp(const Op &loop, OpKind kind) {
  return llvm::any_of(loop.body.ops, [&](const std::unique_ptr<Op> &op) { return op->kind == kind; });
}

/// Whether it is a rotated step, and asks for that.
bool isOptimistic(const Op &loop) {
  return hasOp(loop, OpKind::RescaleOutput) && llvm::any_of(loop.body.ops, [](const std::unique_ptr<Op> &op) {
           const auto rescale = dynCast<RescaleRowsOp>(*op);
           return rescale && rescale->optimistic();
         });
}

/// Whether a group's threads can keep what masks a step, too.
bool hasRegisters(const Role &math) { return math.warps / kGroupWarps < 3; }

/// Whether it has one softmax, of one product.
bool isStep(const Op &loop) {
  constexpr OpKind kOnce[] = {OpKind::RowMax, OpKind::RescaleRows, OpKind::Exp2, OpKind::RowSum, OpKind::RescaleOutput};
  if (!llvm::all_of(kOnce, [&](OpKind kind) { return hasOp(loop, kind) && countOf(loop.body, kind) == 1; }))
    return false;
  const Buffer *const terms = RowSumOp(*firstOf(loop.body, OpKind::RowSum)).s().buffer;
  return RowMaxOp(*firstOf(loop.body, OpKind::RowMax)).s().buffer == terms &&
         Exp2Op(*firstOf(loop.body, OpKind::Exp2)).s().buffer == terms && productInto(loop.body.ops, terms);
}

} // namespace

bool fagen::settleRows(Kernel &kernel, PassContext &context) {
  ShapeCheck shape(kernel, context, "settle-rows");
  bool hasChanged = false;
  for (Role &role : kernel.roles)
    for (const std::unique_ptr<Op> &op : role.body.ops)
      if (op->kind == OpKind::Loop && isOptimistic(*op) && (!hasOp(*op, OpKind::Mask) || hasRegisters(role))) {
        if (!shape.needs(isStep(*op), "a product and one row_max, exp2 and row_sum of it in a loop that is optimistic",
                         op->location))
          return hasChanged;
        RowSettler(*op).run();
        hasChanged = true;
      }
  return hasChanged;
}
