// fagen: pass issue-products: products of warp groups are issued, and waited for where their results are used.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Without overlap, or with that of other warp groups only, each product stands alone:
//
//   fence; mma_issue; mma_commit; mma_wait 0
//
// but those that follow each other, and need nothing of each other's, which are issued, and waited for, as one.
//
// With overlap = intra or both the loops over key tiles are rotated, so that P V of tile j - 1 runs under the softmax
// of tile j (FlashAttention-3, Shah et al., 2024). While it does nobody may touch O, so that O follows a new maximum
// later than the sums:
//
//   first step   S(0); wait; softmax(0)
//   step j       S(j), O += P V(j - 1); wait for S; m_new = max(S); alpha, l, m; S = exp2(S); l += sum(S); wait for P
//   V;
//                convert P; O = O alpha
//   last step    O += P V(last); wait
//
// The first step is one of the masked kind, since it may be the only one; with a branch around its mask, since mostly
// it is not. A loop of masked steps that never has a second one is gone then.

#include "fagen/IR/Products.h"
#include "fagen/IR/Queries.h"
#include "fagen/IR/Rescaling.h"
#include "fagen/IR/Settling.h"
#include "fagen/Passes/Passes.h"

#include "fagen/Target/MmaInstrs.h"

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"
#include "fagen/Spec/Spec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

std::unique_ptr<Op> issueOf(MmaOp<const Op> product) {
  return makeMmaIssue({.acc = product.acc(),
                       .a = product.a(),
                       .b = product.b(),
                       .form = product.form(),
                       .accumulate = product.accumulate(),
                       .first = product->has(Attr::First) ? std::optional(product.first()) : std::nullopt,
                       .location = product->location});
}

void appendIssue(Ops &ops, MmaOp<const Op> product) {
  const Location &location = product->location;
  ops.push_back(makeFence({.kind = FenceKind::Mma, .location = location}));
  ops.push_back(issueOf(product));
  ops.push_back(makeMmaCommit({.location = location}));
}

void appendWait(Ops &ops, int64_t pending, const Location &location) {
  ops.push_back(makeMmaWait({.pending = pending, .location = location}));
}

/// Whether these, the last ops of a block, issue products, commit, and wait, and none of those feeds the product or
/// would be overwritten by it.
bool endsApartFrom(const Ops &ops, const Product &product) {
  if (ops.size() < 3 || ops.back()->kind != OpKind::MmaWait)
    return false;
  for (size_t i = ops.size() - 2; i-- != 0 && ops[i]->kind == OpKind::MmaIssue;) {
    const Buffer *const acc = MmaIssueOp(std::as_const(*ops[i])).acc().buffer;
    if (acc == product.a || acc == product.b || (acc == product.acc && !product.accumulates))
      return false;
  }
  return true;
}

/// Those in a vote stay: they are of warps that come along, each by itself.
void issueAlone(Block &block) {
  Ops ops;
  for (std::unique_ptr<Op> &op : block.ops) {
    if (op->kind != OpKind::Vote)
      issueAlone(op->body);
    const auto product = dynCast<MmaOp>(std::as_const(*op));
    if (!product) {
      ops.push_back(std::move(op));
    } else if (endsApartFrom(ops, *asProduct(*op))) {
      ops.insert(ops.end() - 2, issueOf(*product));
    } else {
      appendIssue(ops, *product);
      appendWait(ops, 0, op->location);
    }
  }
  block.ops = std::move(ops);
}

bool isProductLoop(const Op &op) {
  return op.kind == OpKind::Loop &&
         llvm::any_of(op.body.ops, [](const std::unique_ptr<Op> &inner) { return inner->kind == OpKind::Mma; });
}

class LoopRotator {
public:
  LoopRotator(Kernel &kernel, Block &body) : kernel(kernel), body(body) {}

  void run() {
    addAlpha();
    Ops ops;
    bool isFirst = true;
    for (std::unique_ptr<Op> &op : body.ops) {
      if (op->kind == OpKind::Loop) {
        if (std::exchange(isFirst, false))
          ops.push_back(firstStep());
        lastLoop = rotate(*op);
        if (neverRuns(LoopOp(std::as_const(*op))))
          continue;
      } else if (lastLoop) {
        ops.push_back(lastStep());
        lastLoop = nullptr;
      }
      ops.push_back(std::move(op));
    }
    body.ops = std::move(ops);
  }

private:
  /// Where nothing follows a maximum there is nothing to multiply O by.
  void addAlpha() {
    const auto found = findRescaling(loops().front()->body.ops);
    if (!found)
      return;
    Buffer buffer = *found->rescaling.m;
    buffer.name = kernel.freshName("alpha");
    alpha = &kernel.addBuffer(std::move(buffer));
  }

  llvm::SmallVector<const Op *, 2> loops() const {
    llvm::SmallVector<const Op *, 2> found;
    for (const std::unique_ptr<Op> &op : body.ops)
      if (op && op->kind == OpKind::Loop)
        found.push_back(op.get());
    return found;
  }

  static bool isMasked(const Op &loop) {
    return llvm::any_of(loop.body.ops, [](const std::unique_ptr<Op> &op) { return isMask(*op); });
  }

  /// What a rotated step issues, in this order: each product `lag` steps after the step that it is of. Those of the
  /// step itself are waited for at once, the others before an operand of theirs is made anew.
  struct Asked {
    MmaOp<const Op> product;
    int64_t lag;
  };
  static llvm::SmallVector<Asked, 2> askedIn(const Op &loop) {
    const auto fed = fedProducts(loop.body);
    llvm::SmallVector<Asked, 2> asked;
    for (const std::unique_ptr<Op> &op : loop.body.ops)
      if (const auto product = dynCast<MmaOp>(std::as_const(*op)))
        asked.push_back({*product, fed.contains(op.get()) ? 1 : 0});
    llvm::stable_sort(asked, [](const Asked &a, const Asked &b) { return a.lag < b.lag; });
    return asked;
  }

  /// "P V": the products of a step that are issued in the next one.
  static std::string lateProducts(const Op &loop) {
    std::string names;
    for (const Asked &asked : askedIn(loop))
      if (asked.lag != 0)
        names += (names.empty() ? "" : " and ") + llvm::StringRef(asked.product.a().buffer->name).upper() + " " +
                 llvm::StringRef(asked.product.b().buffer->name).upper();
    return names;
  }

  static std::unique_ptr<Op> makePart(LoopOp<const Op> from, const char *name, const std::string &what, Expr begin,
                                      Expr end) {
    return makeLoop({.variable = from.variable().str(),
                     .begin = std::move(begin),
                     .end = std::move(end),
                     .name = name,
                     .about = from.about().empty() ? "" : what,
                     .location = from->location});
  }

  std::unique_ptr<Op> firstStep() {
    const llvm::SmallVector<const Op *, 2> all = loops();
    const bool maskedFirst = all.size() > 1 && isMasked(*all.front());
    const Op &masked = maskedFirst ? *all.front() : *all.back();
    late = lateProducts(masked);
    std::unique_ptr<Op> loop =
        makePart(LoopOp(masked), "first", "Scores and softmax of the first step: no " + late + " runs under them yet",
                 constant(0), min(LoopOp(*all.back()).end(), constant(1)));
    for (const Asked &asked : askedIn(masked))
      if (asked.lag == 0)
        appendIssue(loop->body.ops, asked.product);
    appendWait(loop->body.ops, 0, masked.location);
    appendSoftmax(loop->body.ops, masked, [](Ops &) {});
    if (all.size() > 1)
      forEachMask(loop->body, [&](MaskMap<Op> mask) { mask.setWhen(hasFirstStep(LoopOp(masked))); });
    return loop;
  }

  /// Whether step 0 is one of the loop's, which may begin later, or be empty.
  static Expr hasFirstStep(LoopOp<const Op> loop) {
    const Expr end = loop.end();
    if (!(loop.begin() == constant(0)))
      return lessThan(loop.begin(), constant(1));
    return end.kind() == ExprKind::Sub ? lessThan(end.rhs(), end.lhs()) : lessThan(constant(0), end);
  }

  /// Of the loop before, whose ops are rotated already.
  std::unique_ptr<Op> lastStep() const {
    const LoopOp before(std::as_const(*lastLoop));
    const Expr end = before.end();
    std::unique_ptr<Op> loop = makePart(before, "last", late + " of the last step", end - min(end, constant(1)), end);
    for (const std::unique_ptr<Op> &product : left)
      appendIssue(loop->body.ops, MmaOp(std::as_const(*product)));
    appendWait(loop->body.ops, 0, lastLoop->location);
    return loop;
  }

  /// O follows later.
  Rescaling ofRows(Rescaling rescaling) const {
    rescaling.o = nullptr;
    rescaling.alpha = alpha;
    return rescaling;
  }

  /// What stands between the products, up to what needs P V to be complete: `finish` does that, and puts O in order.
  void appendSoftmax(Ops &ops, const Op &loop, llvm::function_ref<void(Ops &)> finish) const {
    const auto found = findRescaling(loop.body.ops);
    for (size_t i = 0; i != loop.body.ops.size(); ++i) {
      const Op &op = *loop.body.ops[i];
      if (op.kind == OpKind::Mma || op.kind == OpKind::Place)
        continue;
      if (found && i == found->at) {
        llvm::move(makeRescaling(ofRows(found->rescaling), op.location), std::back_inserter(ops));
        i += found->rescaling.count - 1;
        continue;
      }
      if (op.kind == OpKind::Convert)
        finish(ops);
      ops.push_back(clone(op));
    }
  }

  bool isAtMost(const Expr &a, const Expr &b) const {
    const std::optional<Interval> above = difference(expand(kernel, a), expand(kernel, b));
    return above && above->high <= 0;
  }

  /// max(begin, 1)
  Expr afterFirst(const Expr &begin) const {
    return isAtMost(begin, constant(1))         ? constant(1)
           : begin.kind() == ExprKind::Constant ? begin
                                                : max(begin, constant(1));
  }

  /// Whether the first step is the only one that a loop has.
  bool neverRuns(LoopOp<const Op> loop) const { return isAtMost(loop.end(), loop.begin()); }

  /// The loop from its second tile on.
  Op *rotate(Op &op) {
    const LoopOp loop(op);
    const auto found = findRescaling(op.body.ops);
    Ops ops;
    Location location; // of what is left
    left.clear();
    for (const Asked &asked : askedIn(op)) {
      std::unique_ptr<Op> product = clone(*asked.product);
      if (asked.lag != 0) {
        substitute(*product, loop.variable(), variable(loop.variable()) - constant(asked.lag));
        left.push_back(clone(*asked.product));
        location = product->location;
      }
      appendIssue(ops, MmaOp(std::as_const(*product)));
    }
    appendWait(ops, int64_t(left.size()), op.location);
    appendSoftmax(ops, op, [&](Ops &ops) { appendWait(ops, 0, location); });
    if (found)
      ops.push_back(makeOutputRescaling({.o = found->rescaling.o, .alpha = alpha, .isLazy = found->rescaling.isLazy},
                                        op.body.ops[found->at]->location));
    op.body.ops = std::move(ops);
    loop.setBegin(afterFirst(loop.begin()));
    return &op;
  }

  Kernel &kernel;
  Block &body;
  Buffer *alpha = nullptr;
  Op *lastLoop = nullptr;
  Ops left;         ///< the products left over, as the last loop had them
  std::string late; ///< what a text calls these
};

} // namespace

/// Whether P V of a step runs under the softmax of the next one.
static bool isRotated(const Kernel &kernel) {
  const Overlap overlap = valueOr(kernel.options.overlap, Overlap::None);
  return overlap == Overlap::Intra || overlap == Overlap::Both;
}

static bool takesPosition(MmaOp<const Op> product, llvm::StringRef variable) {
  return product.b().position && product.b().position.uses(variable);
}

static bool takesNoMaximum(const Block &step) {
  return !firstOf(step, [](const Op &op) { return isReduction(op, Reduction::Max); });
}

/// Whether each loop of the role is a step that can be rotated.
static bool fits(const Role &role, ShapeCheck &shape) {
  for (const std::unique_ptr<Op> &op : role.body.ops) {
    if (op->kind != OpKind::Loop)
      continue;
    const auto fed = fedProducts(op->body);
    auto product = [&](bool isFed) {
      return firstOf(op->body,
                     [&](const Op &inner) { return inner.kind == OpKind::Mma && fed.contains(&inner) == isFed; });
    };
    const Op *const output = product(/*isFed=*/true);
    if (!shape.needs(product(/*isFed=*/false) && output && countOf(op->body, OpKind::Mma) == 2,
                     "two products in each loop, of which one feeds the other", op->location) ||
        !shape.needs(takesPosition(MmaOp(*output), LoopOp(*op).variable()),
                     "a product that another feeds whose b is at the loop's position", output->location) ||
        !shape.needs((findRescaling(op->body.ops) || takesNoMaximum(op->body)) && firstOf(op->body, OpKind::Convert),
                     "one rescaling of sums and results, or no maximum, and a convert, in each loop", op->location))
      return false;
  }
  return true;
}

/// Four warps issue a product together, and warps part in a vote. Where it settles rows each warp makes its own.
static void refuseVoted(const Kernel &kernel, PassContext &context) {
  for (const Role &role : kernel.roles)
    if (const Op *const product = findUnsettling(role.body))
      context.diags.error(product->location, "a product by " + kernel.backend +
                                                 " is four warps' together, and this one stands in a vote, where each "
                                                 "warp decides for itself; multiply before the vote, or by `backend "
                                                 "mma_sync`, whose products are a warp's own");
}

bool fagen::issueProducts(Kernel &kernel, PassContext &context) {
  ShapeCheck shape(kernel, context, "issue-products");
  auto isRotatedRole = [&](const Role &role) { return isRotated(kernel) && firstOf(role.body, isProductLoop); };
  for (const Role &role : kernel.roles)
    if (isRotatedRole(role) && !fits(role, shape))
      return false;
  for (Role &role : kernel.roles)
    if (isRotatedRole(role))
      LoopRotator(kernel, role.body).run();
    else
      issueAlone(role.body);
  refuseVoted(kernel, context);
  return true;
}
