// fagen: pass pipeline-loads: copies run ahead of their readers by the depth of the ring.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A ring is refilled as soon as its oldest slot is free. With S stages:
//
//   split: K and V apart                              joint, late: K and V together
//     before: K(0), V(0), K(1), ... V(S-2), K(S-1)      before: K,V(0) ... K,V(S-2)
//     step j: wait K(j)                                 step j: joint: issue K,V(j+S-1)   slots of K,V(j-1)
//             issue V(j+S-1)  slot of V(j-1)                    wait K,V(j)
//             S = Q K^T                                         S = Q K^T
//             wait V(j)                                         late: issue K,V(j+S-1)
//             issue K(j+S)    slot of K(j)                      softmax, O += P V
//             softmax, O += P V
//
// so one stage already has K(j+1) in flight under softmax and P V, and V(j) under Q K^T (FlashAttention-2's order).
// Copies past the last tile are skipped, but their groups are committed all the same: a wait counts groups, and the
// count must not depend on the tile. Waits get their exact counts from resolveWaits. A synchronous copy (ld_st) stands
// at the same places without commits and waits.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "fagen/Target/MmaInstrs.h"

#include "ShapeCheck.h"
#include "fagen/Analysis/Timeline.h"
#include "fagen/Spec/Spec.h"

#include "llvm/ADT/STLExtras.h"

#include <utility>

using namespace fagen;
using namespace fagen::ir;

namespace {

class LoadPipeliner {
public:
  explicit LoadPipeliner(Kernel &kernel)
      : stages(kernel.constant("kStages")), refill(refillOf(kernel)), joint(refill != Refill::Split) {}

  /// Each loop copies the b of its two products, into rings of kStages slots, and nothing is ahead or awaited yet.
  bool fits(const Role &role, ShapeCheck &shape) const {
    for (const std::unique_ptr<Op> &op : role.body.ops)
      if (op->kind == OpKind::Loop &&
          !shape.needs(copiesOperands(*op),
                       "loops that copy the b of a product abt and of a product ab, each into a "
                       "ring of kStages slots",
                       op->location))
        return false;
    return shape.needs(countOf(role.body, OpKind::CopyCommit) + countOf(role.body, OpKind::CopyWait) == 0,
                       "copies that no copy_commit and no copy_wait follows yet");
  }

  void run(Block &body) {
    takeTemplates(body);
    tiles = LoopOp(*lastLoop(body)).end();
    isAsync = isThreadAsyncCopy(*copyK);
    Ops ops;
    bool beforeLoops = true, hasPrologue = false;
    loadsFragment = llvm::any_of(body.ops, [](const auto &op) { return op && op->kind == OpKind::LoadFragment; });
    for (std::unique_ptr<Op> &op : body.ops) {
      if (const auto loop = dynCast<LoopOp>(*op)) {
        if (!std::exchange(hasPrologue, true))
          buildPrologue(ops);
        beforeLoops = false;
        const Expr j = ir::variable(loop->variable());
        op->body.ops = joint ? jointStep(std::move(op->body.ops), j) : splitStep(std::move(op->body.ops), j);
      } else if (const auto copy = dynCast<CopyIssueOp>(*op); copy && beforeLoops && !loadsFragment) {
        copy->setWhen(lessThan(constant(0), tiles)); // else nothing would wait for it
      } else if (const auto load = dynCast<LoadFragmentOp>(*op); load && beforeLoops) {
        appendCommit(ops, "pipeline-loads: the group of Q");
        if (load->src().buffer->overlays.empty()) { // the rings are free: K and V need not wait for Q
          hasPrologue = true;
          buildPrologue(ops);
        }
        appendWait(ops, "pipeline-loads: Q has arrived");
      }
      ops.push_back(std::move(op));
    }
    body.ops = std::move(ops);
  }

private:
  /// IR from text may lack the option.
  static Refill refillOf(const Kernel &kernel) {
    return valueOr(kernel.options.refill, mmaFamily(kernel.backend).isCollective ? Refill::Split : Refill::Joint);
  }

  /// The b of the loop's product of this form; null where there is none.
  static const Buffer *operandOf(const Op &loop, MmaForm form) {
    const Op *product = firstOf(loop.body, [&](const Op &op) { return isProduct(op, form); });
    return product ? MmaOp(*product).b().buffer : nullptr;
  }

  bool copiesOperands(const Op &loop) const {
    const Buffer *const k = operandOf(loop, MmaForm::Abt), *const v = operandOf(loop, MmaForm::Ab);
    bool copies = k && v && k != v && countOf(loop.body, OpKind::CopyIssue) == 2;
    for (const Buffer *ring : {k, v})
      copies &= ring && ring->isRing && ring->stages == stages &&
                firstOf(loop.body, [&](const Op &op) { return isCopyTo(op, ring); });
    return copies;
  }

  /// Takes the copies of K and V out of every loop; those of the last one are the pattern for all others.
  void takeTemplates(Block &body) {
    for (std::unique_ptr<Op> &op : body.ops) {
      const auto loop = dynCast<LoopOp>(*op);
      if (!loop)
        continue;
      variable = loop->variable().str();
      const Buffer *const k = operandOf(*op, MmaForm::Abt);
      for (std::unique_ptr<Op> &inner : op->body.ops)
        if (inner->kind == OpKind::CopyIssue)
          (isCopyTo(*inner, k) ? copyK : copyV) = std::move(inner);
      llvm::erase_if(op->body.ops, [](const std::unique_ptr<Op> &inner) { return !inner; });
    }
  }

  /// The copy of `position`, only if such a tile exists.
  std::unique_ptr<Op> copyOf(const Op &pattern, Expr position, const char *note) const {
    std::unique_ptr<Op> op = clone(pattern);
    const CopyIssueOp copy(*op);
    copy.dst().position = position;
    copy.setRow(copy.row().substitute(variable, position));
    copy.setWhen(lessThan(position, tiles));
    op->note = note;
    return op;
  }

  void appendCommit(Ops &ops, const char *note = "") const {
    if (isAsync)
      ops.push_back(makeCopyCommit({.location = copyK->location, .note = note}));
  }

  void appendWait(Ops &ops, const char *note) const {
    if (isAsync)
      ops.push_back(makeCopyWait({.pending = -1, .location = copyK->location, .note = note}));
  }

  void appendLoaded(Ops &ops) const {
    ops.push_back(makePlace({.name = PlaceName::AfterLoad, .location = copyK->location}));
  }

  void buildPrologue(Ops &ops) const {
    for (int64_t position = 0; position < stages; ++position) {
      if (joint && position == stages - 1)
        break;
      if (!joint && position > 0) {
        ops.push_back(copyOf(*copyV, constant(position - 1), "pipeline-loads: V runs ahead"));
        appendCommit(ops);
      }
      ops.push_back(copyOf(*copyK, constant(position), "pipeline-loads: K runs ahead"));
      if (joint)
        ops.push_back(copyOf(*copyV, constant(position), "pipeline-loads: V runs ahead"));
      appendCommit(ops);
    }
    if (joint && stages == 1 && !loadsFragment) // else Q's group is closed already
      appendCommit(ops, "pipeline-loads: the group of Q");
  }

  Ops splitStep(Ops body, const Expr &j) const {
    Ops ops;
    appendWait(ops, "pipeline-loads: K(j) has arrived");
    appendLoaded(ops);
    ops.push_back(
        copyOf(*copyV, j + ir::variable("kStages") - constant(1), "pipeline-loads: V into the slot that P V left"));
    appendCommit(ops);
    for (std::unique_ptr<Op> &op : body) {
      const bool readsK = isProduct(*op, MmaForm::Abt);
      ops.push_back(std::move(op));
      if (!readsK)
        continue;
      appendWait(ops, "pipeline-loads: V(j) has arrived");
      appendLoaded(ops);
      ops.push_back(copyOf(*copyK, j + ir::variable("kStages"), "pipeline-loads: K into the slot that Q K^T left"));
      appendCommit(ops);
    }
    return ops;
  }

  void appendJointCopies(Ops &ops, const Expr &j) const {
    const Expr ahead = j + ir::variable("kStages") - constant(1);
    ops.push_back(copyOf(*copyK, ahead, "pipeline-loads: K and V into the slots of the step before"));
    ops.push_back(copyOf(*copyV, ahead, ""));
    appendCommit(ops);
  }

  Ops jointStep(Ops body, const Expr &j) const {
    Ops ops;
    if (refill == Refill::Joint)
      appendJointCopies(ops, j);
    appendWait(ops, "pipeline-loads: K(j) and V(j) have arrived");
    appendLoaded(ops);
    for (std::unique_ptr<Op> &op : body) {
      const bool readsK = isProduct(*op, MmaForm::Abt);
      ops.push_back(std::move(op));
      if (refill == Refill::Late && readsK)
        appendJointCopies(ops, j);
    }
    return ops;
  }

  const int64_t stages;
  const Refill refill;
  const bool joint;
  bool isAsync = false;
  bool loadsFragment = false; ///< Q goes to registers, behind a wait of its own
  std::string variable;       ///< of the loop that the patterns are from
  Expr tiles;                 ///< where the last loop ends
  std::unique_ptr<Op> copyK, copyV;
};

} // namespace

/// Whether the role has a loop that copies: without one there is nothing to run ahead.
static bool hasLoads(const Role &role) {
  return firstOf(role.body,
                 [](const Op &op) { return op.kind == OpKind::Loop && countOf(op.body, OpKind::CopyIssue); });
}

bool fagen::pipelineLoads(Kernel &kernel, PassContext &context) {
  const bool isAhead = kernel.roles.size() > 1; // whoever loads runs ahead by itself
  if (!isAhead && hasLoads(kernel.roles.front())) {
    LoadPipeliner pipeliner(kernel);
    ShapeCheck shape(kernel, context, "pipeline-loads");
    if (!pipeliner.fits(kernel.roles.front(), shape))
      return false;
    pipeliner.run(kernel.roles.front().body);
  }
  if (!isAhead)
    resolveWaits(kernel);
  kernel.phase = Phase::Pipelined;
  return !isAhead;
}
