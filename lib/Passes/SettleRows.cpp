// fagen: pass settle-rows: interior steps take no row maximum while the old one will do.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With rescale = optimistic a rotated step (issue-products) computes its terms by the maximum of the tiles before.
// Their sums, which are wanted anyway, tell where that was too small: no term is larger than its row's sum.
//
//   before   m_new = max(s); alpha, l, m; s = exp2(s); l += sum(s)   ...   o = o alpha
//   after    s = exp2(s); sums = sum(s)
//            vote sums > bound { vote sums > 2^100 { s = q k^T; ...; sums = sum(s) }; s, sums, l, alpha, m by sums }
//            l += sums   ...   o = o alpha, where alpha is not 1
//
// A sum that is finite tells by how much its row's terms are too large. Where it is not, the warp does the step again,
// by products of its own: the scores are gone, Q and K are not. The first step takes its maximum as ever. So do masked
// steps of three warp groups: what they would keep to mask again is more than their threads have registers for.
//
// A row may have seen no key in the tiles before a masked step: it has no maximum yet, and no sum. A masked step asks
// for such rows first, and has them take the maximum of its own scores, while these are there.
//
// With settle_apart = 1 the votes of whole tiles are `apart`: the text of what is rare moves out of the loop. In the
// loop it is 8 KB that each step jumps over. Warps of a group then go different ways until l += sums, and must not wait
// for products on them: the step's last wait moves up to the vote.

#include "fagen/IR/Queries.h"
#include "fagen/IR/Settling.h"
#include "fagen/Passes/Passes.h"

#include "AskedNumbers.h"
#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

using Is = bool (*)(const Op &);

bool isOutputRescaling(const Op &op) { return asOutputRescaling(op).has_value(); }
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

unsigned countIn(const Ops &ops, Is is) {
  return llvm::count_if(ops, [&](const std::unique_ptr<Op> &op) { return is(*op); });
}

class RowSettler {
public:
  /// `sums` are those of a step.
  RowSettler(Op &loop, const Buffer &sums, bool isApart) : ops(loop.body.ops), sums(sums), isApart(isApart) {}

  void run() {
    Ops settled = makeSettled();
    insert(ops, ops.erase(position(isRowSum)), std::move(settled));
    MapOp terms(**position(isPowers));
    terms->note = "online softmax; settle-rows: by the maximum of the tiles before";
    if (countIn(ops, isMask) != 0)
      begin(terms);
    else
      terms.setValue(assumeFinite(terms.value())); // a row without a maximum has no number, and is found by that
    ops.erase(position(isRowMax));
    const size_t at = findRescaling(ops)->at;
    ops.erase(ops.begin() + at, ops.begin() + at + findRescaling(ops)->rescaling.count);
    lazily(*position(isOutputRescaling));
    if (isApart)
      waitBehindVote();
  }

private:
  /// Rows that saw no key in the tiles before.
  void begin(MapOp<Op> terms) {
    const Rescaling rescaling = findRescaling(ops)->rescaling;
    std::unique_ptr<Op> op =
        makeBeginning({.s = terms.dst().buffer, .m = rescaling.m, .mNew = rescaling.mNew}, terms->location);
    op->note = "settle-rows: those that saw no key before take their first maximum";
    ops.insert(position(isPowers), std::move(op));
  }

  /// A group waits for its products as one. What is apart ends after that, so the wait comes right after the vote.
  void waitBehindVote() {
    const auto vote = llvm::find_if(ops, [](const std::unique_ptr<Op> &op) { return op->isSet(Attr::Apart); });
    const auto wait =
        std::find_if(vote, ops.end(), [](const std::unique_ptr<Op> &op) { return op->kind == OpKind::MmaWait; });
    if (wait != ops.end())
      std::rotate(vote + 1, wait, wait + 1);
  }

  /// In other warps alpha is 1.
  static void lazily(std::unique_ptr<Op> &op) {
    OutputRescaling output = *asOutputRescaling(*op);
    output.isLazy = true;
    op = makeOutputRescaling(output, op->location);
  }

  /// What is said of the sums, of the scores again where one is too large, and of l.
  Ops makeSettled() {
    const auto [rescaling, at] = *findRescaling(ops);
    const ReduceOp sum(**position(isRowSum));
    const Settling settling{.s = sum.src().buffer,
                            .sums = &sums,
                            .alpha = rescaling.alpha,
                            .l = rescaling.l,
                            .m = rescaling.m,
                            .mNew = rescaling.mNew,
                            .factor = rescaling.factor,
                            .order = asPowers(**position(isPowers))->order,
                            .product = productInto(ops, sum.src().buffer),
                            .shaping = shapingOf(ops),
                            .isApart = isApart};
    Ops settled = makeSettling(settling, ops[at]->location);
    settled.front()->note = "settle-rows: smaller, where a row has outgrown that";
    return settled;
  }

  /// The maps that the scores go through before their maximum.
  static llvm::SmallVector<const Op *, 2> shapingOf(const Ops &ops) {
    llvm::SmallVector<const Op *, 2> shaping;
    for (const std::unique_ptr<Op> &op : ops) {
      if (isRowMax(*op))
        break;
      if (op->kind == OpKind::Map)
        shaping.push_back(op.get());
    }
    return shaping;
  }

  Ops::iterator position(Is is) {
    return llvm::find_if(ops, [&](const std::unique_ptr<Op> &op) { return is(*op); });
  }

  Ops &ops;
  const Buffer &sums;
  const bool isApart;
};

unsigned countIn(const Op &loop, Is is) { return countIn(loop.body.ops, is); }

/// Whether it is a rotated step.
bool isRotated(const Op &loop) { return countIn(loop, isOutputRescaling) != 0; }

/// Whether a group's threads can keep what masks a step, too.
bool hasRegisters(const Role &math) { return math.warps / kGroupWarps < 3; }

/// Whether it has one softmax, of one product.
bool isStep(const Op &loop) {
  constexpr Is kOnce[] = {isRowMax, isPowers, isRowSum, isOutputRescaling};
  const auto rescaling = findRescaling(loop.body.ops);
  if (!llvm::all_of(kOnce, [&](Is is) { return countIn(loop, is) == 1; }) || !rescaling || !rescaling->rescaling.alpha)
    return false;
  const Buffer *const terms = ReduceOp(*firstOf(loop.body, isRowSum)).src().buffer;
  const Op *const product = productInto(loop.body.ops, terms);
  return ReduceOp(*firstOf(loop.body, isRowMax)).src().buffer == terms &&
         asPowers(*firstOf(loop.body, isPowers))->scores->buffer == terms && product && canSettle(*product);
}

/// Those that an earlier loop has, or new ones, as l is.
const Buffer &sumsOf(Kernel &kernel, const Op &loop, const Buffer *&sums) {
  if (!sums) {
    Buffer buffer = *findRescaling(loop.body.ops)->rescaling.l;
    buffer.name = kernel.freshName("sums");
    sums = &kernel.addBuffer(std::move(buffer));
  }
  return *sums;
}

} // namespace

bool fagen::settleRows(Kernel &kernel, PassContext &context) {
  ShapeCheck shape(kernel, context, "settle-rows");
  bool hasChanged = false;
  const Buffer *sums = nullptr;
  const bool isApart = askedNumber(kernel, OptionKey::SettleApart) != nullptr;
  if (valueOr(kernel.options.rescale, RescalePolicy::Always) != RescalePolicy::Optimistic)
    return hasChanged;
  for (Role &role : kernel.roles)
    for (const std::unique_ptr<Op> &op : role.body.ops)
      if (op->kind == OpKind::Loop && isRotated(*op) && (countIn(*op, isMask) == 0 || hasRegisters(role))) {
        if (!shape.needs(
                isStep(*op),
                "a product of f16, bf16 or e4m3 and one maximum, one exp2 and one sum of its rows in a loop that is "
                "optimistic",
                op->location))
          return hasChanged;
        RowSettler(*op, sumsOf(kernel, *op, sums), isApart && countIn(*op, isMask) == 0).run();
        hasChanged = true;
      }
  return hasChanged;
}
