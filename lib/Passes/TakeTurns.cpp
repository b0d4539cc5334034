// fagen: pass take-turns: warp groups take turns at the tensor cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups that issue products at the same time have their softmax at the same time, too. In turns one multiplies while
// another takes exponentials:
//
//   math   pass_turn    the last group, once: the first one begins
//          ...
//          await_turn   before the products of a step
//          fence, mma_issue, mma_commit ...
//          pass_turn    after the last of them
//          ...
//          await_turn   the first group, at the end: it takes what was passed on last, so that no arrival is left over
//
// All groups of a CTA have as many steps as each other, so each turn comes. P V of the last step, which no product of
// scores goes with, waits for none; before it a group that skips key tiles passes on its turns at those. No access
// needs any of this; that nobody waits for ever is verify-barriers' to say.
//
// With overlap = pingpong a group's own softmax stands between the products of a step. Then a turn is P V of one step
// and the scores of the next: it begins before the steps, is passed on after the scores and awaited again
// before P V, and the last one ends after the steps.

#include "fagen/IR/Products.h"
#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"
#include "fagen/Spec/Spec.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

class TurnTaker {
public:
  TurnTaker(Kernel &kernel, Role &math, Overlap overlap)
      : kernel(kernel), math(math), overlap(overlap), groups(math.warps / kGroupWarps), fed(fedProducts(math.body)) {}

  bool fits(ShapeCheck &shape) const {
    return shape.needs(groups >= 2, "two groups of four warps or more in role " + math.name) &&
           shape.needs(headBarrier(math.body) != math.body.ops.end(), "a barrier at the head of role " + math.name) &&
           shape.needs(countOf(math.body, OpKind::AwaitTurn) == 0, "groups that take no turns yet") &&
           (overlap == Overlap::Both ? fits(math.body, shape) : fitsAcrossSteps(math.body, shape));
  }

  void run() {
    id = firstFreeBarrier(kernel);
    if (overlap == Overlap::Both)
      takeTurns(math.body);
    else
      takeTurnsAcrossSteps(math.body);
    passSkipped(math.body);
    math.body.ops.insert(headBarrier(math.body) + 1, pass("take-turns: the first group begins", groups - 1));
    math.body.ops.push_back(await("take-turns: nobody comes after the last turn", 0));
  }

private:
  const Location &location() const { return kernel.options.overlap->location; }

  std::unique_ptr<Op> await(llvm::StringRef note, std::optional<int64_t> group = {}) const {
    return makeAwaitTurn({.id = id, .groups = groups, .group = group, .location = location(), .note = note.str()});
  }

  std::unique_ptr<Op> pass(llvm::StringRef note, std::optional<int64_t> group = {}) const {
    return makePassTurn({.id = id, .groups = groups, .group = group, .location = location(), .note = note.str()});
  }

  /// Of the products of a step those that nothing feeds come first, and others wait for what these become.
  bool begins(const Op &op) const { return op.kind == OpKind::MmaIssue && !fed.contains(&op); }
  bool isFed(const Op &op) const { return op.kind == OpKind::MmaIssue && fed.contains(&op); }

  /// The first products are committed in the block where they are issued.
  bool fits(const Block &block, ShapeCheck &shape) const {
    auto first = llvm::find_if(block.ops, [&](const auto &op) { return begins(*op); });
    const bool isCommitted = first == block.ops.end() || std::any_of(first, block.ops.end(), [](const auto &op) {
                               return op->kind == OpKind::MmaCommit;
                             });
    return shape.needs(isCommitted, "an mma_commit after the products of a step",
                       isCommitted ? Location() : (*first)->location) &&
           llvm::all_of(block.ops, [&](const auto &op) { return fits(op->body, shape); });
  }

  /// A turn begins before the fence of the first product, and ends after the last commit of the block.
  void takeTurns(Block &block) const {
    for (std::unique_ptr<Op> &op : block.ops)
      takeTurns(op->body);
    auto first = llvm::find_if(block.ops, [&](const auto &op) { return begins(*op); });
    if (first == block.ops.end())
      return;
    if (first != block.ops.begin() && (*(first - 1))->kind == OpKind::Fence)
      --first;
    block.ops.insert(first, await("take-turns: this group multiplies"));
    auto last =
        llvm::find_if(llvm::reverse(block.ops), [](const auto &op) { return op->kind == OpKind::MmaCommit; }).base();
    block.ops.insert(last, pass("take-turns: the next one does"));
  }

  bool isStep(const Op &op) const {
    return op.kind == OpKind::Loop && llvm::any_of(op.body.ops, [&](const auto &inner) { return begins(*inner); });
  }

  /// In each step the first product is committed at once, and the one that it feeds comes after a fence.
  bool fitsAcrossSteps(const Block &block, ShapeCheck &shape) const {
    return llvm::all_of(block.ops, [&](const auto &op) {
      return (!isStep(*op) || shape.needs(fitsStep(op->body.ops),
                                          "a product, its mma_commit, and one that it feeds after a fence in each step",
                                          op->location)) &&
             fitsAcrossSteps(op->body, shape);
    });
  }

  bool fitsStep(const std::vector<std::unique_ptr<Op>> &step) const {
    auto first = llvm::find_if(step, [&](const auto &op) { return begins(*op); });
    auto last = llvm::find_if(step, [&](const auto &op) { return isFed(*op); });
    return std::next(first) != step.end() && (*std::next(first))->kind == OpKind::MmaCommit && last != step.end() &&
           last != step.begin() && (*std::prev(last))->kind == OpKind::Fence;
  }

  /// The block that holds the loops over key tiles.
  void takeTurnsAcrossSteps(Block &block) const {
    auto isStepHere = [&](const std::unique_ptr<Op> &op) { return isStep(*op); };
    auto first = llvm::find_if(block.ops, isStepHere);
    if (first == block.ops.end()) {
      for (std::unique_ptr<Op> &op : block.ops)
        takeTurnsAcrossSteps(op->body);
      return;
    }
    for (std::unique_ptr<Op> &op : block.ops)
      if (isStep(*op))
        leaveSoftmaxOut(op->body);
    const size_t begin = first - block.ops.begin();
    auto after = llvm::find_if(llvm::reverse(block.ops), isStepHere).base();
    block.ops.insert(after, pass("take-turns: after the last step"));
    block.ops.insert(block.ops.begin() + begin, await("take-turns: this group multiplies"));
  }

  void leaveSoftmaxOut(Block &step) const {
    auto first = llvm::find_if(step.ops, [&](const auto &op) { return begins(*op); });
    step.ops.insert(first + 2, pass("take-turns: the next one does")); // after its commit
    auto last = llvm::find_if(step.ops, [&](const auto &op) { return isFed(*op); });
    step.ops.insert(last - 1, await("take-turns: this group multiplies")); // before its fence
  }

  /// A loop without products, whose steps leave what others filled.
  static bool isSkipping(const Op &op) {
    return op.kind == OpKind::Loop && countOf(op.body, OpKind::MmaIssue) == 0 && countOf(op.body, OpKind::Wait) != 0;
  }

  /// A loop of fed products alone.
  bool isLast(const Op &op) const {
    bool hasFirst = false;
    walk(op.body, [&](const Op &inner) { hasFirst |= begins(inner); });
    return op.kind == OpKind::Loop && countOf(op.body, OpKind::MmaIssue) != 0 && !hasFirst;
  }

  /// Of key tiles that the group has no products for.
  void passSkipped(Block &block) const {
    for (std::unique_ptr<Op> &op : block.ops)
      passSkipped(op->body);
    const Op *const skipped = firstOf(block, isSkipping), *const last =
                                                              firstOf(block, [&](const Op &op) { return isLast(op); });
    if (!skipped)
      return;
    const LoopOp tiles(*skipped);
    auto loop = makeLoop(
        {.variable = tiles.variable().str(),
         .begin = tiles.begin(),
         .end = tiles.end(),
         .name = "passed",
         .about = ("The group's turn at key tile " + tiles.variable() + ", of which its rows see nothing").str(),
         .location = skipped->location});
    loop->body.ops.push_back(await("take-turns: this group has nothing to multiply"));
    loop->body.ops.push_back(pass("take-turns: the next one does"));
    block.ops.insert(llvm::find_if(block.ops, [&](const auto &op) { return op.get() == (last ? last : skipped); }),
                     std::move(loop));
  }

  Kernel &kernel;
  Role &math;
  const Overlap overlap;
  const unsigned groups;
  const llvm::DenseSet<const Op *> fed;
  int64_t id = 0; ///< of the first group's named barrier
};

} // namespace

bool fagen::takeTurns(Kernel &kernel, PassContext &context) {
  const Overlap overlap = valueOr(kernel.options.overlap, Overlap::None);
  const auto fillers = fillersOf(kernel);
  if (fillers.empty())
    return false;
  std::vector<TurnTaker> takers; // groups of a role among themselves
  for (Role *math : multipliersBeside(kernel, fillers))
    takers.emplace_back(kernel, *math, overlap);
  ShapeCheck shape(kernel, context, "take-turns");
  if (!shape.needs(!takers.empty(), "a role that multiplies") ||
      !llvm::all_of(takers, [&](const TurnTaker &taker) { return taker.fits(shape); }))
    return false;
  for (TurnTaker &taker : takers)
    taker.run();
  return true;
}
