// fagen: pass settle-rows: interior steps take no row maximum while the old one will do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With rescale = optimistic a rotated step (issue-products) computes its terms by the maximum of the tiles before.
// Their sums, which are wanted anyway, tell where that was too small: no term is larger than its row's sum.
//
//   before   m_new = max(s); rescale_rows alpha, l, m; s = exp2(s); l += sum(s)   ...   rescale_output o
//   after    s = exp2(s); settle_rows s, alpha, l, m, from q and k             ...   rescale_output o, only if redone
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

using Is = bool (*)(const Op &);

template <OpKind Kind> bool isOf(const Op &op) { return op.kind == Kind; }
bool isRowMax(const Op &op) { return isReduction(op, Reduction::Max); }
bool isRowSum(const Op &op) { return isReduction(op, Reduction::Sum); }

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
    *position(isRowSum) = makeSettled();
    MapOp terms(**position(isPowers));
    terms.setValue(assumeFinite(terms.value())); // a row without a maximum has no number, and is found by that
    terms->note = "online softmax; settle-rows: by the maximum of the tiles before";
    ops.erase(position(isRowMax));
    ops.erase(position(isOf<OpKind::RescaleRows>));
    RescaleOutputOp(**position(isOf<OpKind::RescaleOutput>)).setRedone(true);
  }

private:
  std::unique_ptr<Op> makeSettled() {
    const RescaleRowsOp rescale(**position(isOf<OpKind::RescaleRows>));
    const ReduceOp sum(**position(isRowSum));
    const MmaIssueOp product(*productInto(ops, sum.src().buffer));
    SettleRowsArgs args{.s = sum.src(),
                        .alpha = rescale.alpha(),
                        .l = rescale.l(),
                        .m = rescale.m(),
                        .q = product.a(),
                        .k = product.b(),
                        .location = rescale->location,
                        .note = "settle-rows: again, where a row has outgrown that"};
    if (const auto found = position(isMask); found != ops.end()) {
      const MaskMap mask(**found);
      args.predicate = mask.predicate();
      args.row = mask.row();
      args.key = mask.key();
    }
    return makeSettleRows(std::move(args));
  }

  Ops::iterator position(Is is) {
    return llvm::find_if(ops, [&](const std::unique_ptr<Op> &op) { return is(*op); });
  }

  Ops &ops;
};

unsigned countIn(const Op &loop, Is is) {
  return llvm::count_if(loop.body.ops, [&](const std::unique_ptr<Op> &op) { return is(*op); });
}

/// Whether it is a rotated step, and asks for that.
bool isOptimistic(const Op &loop) {
  return countIn(loop, isOf<OpKind::RescaleOutput>) != 0 &&
         llvm::any_of(loop.body.ops, [](const std::unique_ptr<Op> &op) {
           const auto rescale = dynCast<RescaleRowsOp>(*op);
           return rescale && rescale->optimistic();
         });
}

/// Whether a group's threads can keep what masks a step, too.
bool hasRegisters(const Role &math) { return math.warps / kGroupWarps < 3; }

/// Whether it has one softmax, of one product.
bool isStep(const Op &loop) {
  constexpr Is kOnce[] = {isRowMax, isOf<OpKind::RescaleRows>, isPowers, isRowSum, isOf<OpKind::RescaleOutput>};
  if (!llvm::all_of(kOnce, [&](Is is) { return countIn(loop, is) == 1; }))
    return false;
  const Buffer *const terms = ReduceOp(*firstOf(loop.body, isRowSum)).src().buffer;
  return ReduceOp(*firstOf(loop.body, isRowMax)).src().buffer == terms &&
         asPowers(*firstOf(loop.body, isPowers))->scores->buffer == terms && productInto(loop.body.ops, terms);
}

} // namespace

bool fagen::settleRows(Kernel &kernel, PassContext &context) {
  ShapeCheck shape(kernel, context, "settle-rows");
  bool hasChanged = false;
  for (Role &role : kernel.roles)
    for (const std::unique_ptr<Op> &op : role.body.ops)
      if (op->kind == OpKind::Loop && isOptimistic(*op) && (countIn(*op, isMask) == 0 || hasRegisters(role))) {
        if (!shape.needs(isStep(*op),
                         "a product and one maximum, one exp2 and one sum of its rows in a loop that is optimistic",
                         op->location))
          return hasChanged;
        RowSettler(*op).run();
        hasChanged = true;
      }
  return hasChanged;
}
