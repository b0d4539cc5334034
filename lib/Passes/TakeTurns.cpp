// fagen: pass take-turns: warp groups take turns at the tensor cores.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups that ask for products at the same time have their softmax at the same time, too. In turns one multiplies while
// another takes exponentials:
//
//   math   pass_turn    the last group, once: the first one begins
//          ...
//          await_turn   in front of the products of a step
//          fence, mma_issue, mma_commit ...
//          pass_turn    behind the last of them
//          ...
//          await_turn   the first group, at the end: it takes what was passed on last, so that no arrival is left over
//
// All groups of a CTA have as many steps as each other, so each turn comes. P V of the last step, which no product of
// scores goes with, waits for none. No access needs any of this; that nobody waits for ever is verify-barriers' to say.

#include "fagen/Passes/Passes.h"

#include "fagen/Spec/Spec.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

constexpr unsigned kGroupWarps = 4;

class TurnTaker {
public:
  TurnTaker(Kernel &kernel, Role &math) : kernel(kernel), math(math), groups(math.warps / kGroupWarps) {}

  void run() {
    findFreeBarrier();
    takeTurns(math.body);
    auto barrier = llvm::find_if(math.body.ops, [](const auto &op) { return op->kind == OpKind::Barrier; });
    math.body.ops.insert(barrier + 1, make(OpKind::PassTurn, "take-turns: the first group begins", groups - 1));
    math.body.ops.push_back(make(OpKind::AwaitTurn, "take-turns: nobody comes behind the last turn", 0));
  }

private:
  void findFreeBarrier() {
    for (const Role &role : kernel.roles)
      walk(role.body, [&](const Op &op) {
        if (op.has("id"))
          id = std::max(id, op.integer("id") + (op.has("groups") ? op.integer("groups") : 1));
      });
  }

  std::unique_ptr<Op> make(OpKind kind, llvm::StringRef note, std::optional<unsigned> group = std::nullopt) const {
    auto op = std::make_unique<Op>(kind);
    op->attributes = {{"id", id}, {"groups", int64_t(groups)}};
    if (group)
      op->attributes["group"] = int64_t(*group);
    auto overlap =
        llvm::find_if(kernel.constants, [](const Constant &constant) { return constant.name == "kOverlap"; });
    op->location = overlap->location;
    op->note = note.str();
    return op;
  }

  static bool isScores(const Op &op) {
    return op.kind == OpKind::MmaIssue && op.operand("a").buffer->space == Space::Shared;
  }

  /// A turn begins in front of the fence of the first product, and ends behind the last commit of the block.
  void takeTurns(Block &block) const {
    for (std::unique_ptr<Op> &op : block.ops)
      takeTurns(op->body);
    auto first = llvm::find_if(block.ops, [](const auto &op) { return isScores(*op); });
    if (first == block.ops.end())
      return;
    if (first != block.ops.begin() && (*(first - 1))->kind == OpKind::Fence)
      --first;
    block.ops.insert(first, make(OpKind::AwaitTurn, "take-turns: this group multiplies"));
    auto last =
        llvm::find_if(llvm::reverse(block.ops), [](const auto &op) { return op->kind == OpKind::MmaCommit; }).base();
    block.ops.insert(last, make(OpKind::PassTurn, "take-turns: the next one does"));
  }

  Kernel &kernel;
  Role &math;
  const unsigned groups;
  int64_t id = 1; ///< 0 is the CTA's
};

} // namespace

bool fagen::takeTurns(Kernel &kernel, PassContext &) {
  const bool isAsked = kernel.hasConstant("kOverlap") && Overlap(kernel.constant("kOverlap")) == Overlap::Both;
  if (!isAsked || kernel.roles.size() != 2)
    return false;
  TurnTaker(kernel, kernel.roles[1]).run();
  return true;
}
