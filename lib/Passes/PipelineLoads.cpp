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

#include "fagen/Passes/Passes.h"

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
    isAsync = copyK->text("kind") == "cp_async";
    std::vector<std::unique_ptr<Op>> ops;
    bool beforeLoops = true, hasPrologue = false;
    loadsFragment = llvm::any_of(body.ops, [](const auto &op) { return op && op->kind == OpKind::LoadFragment; });
    for (std::unique_ptr<Op> &op : body.ops) {
      if (op->kind == OpKind::Loop) {
        if (!std::exchange(hasPrologue, true))
          buildPrologue(ops);
        beforeLoops = false;
        op->body.ops = joint ? jointStep(std::move(op->body.ops)) : splitStep(std::move(op->body.ops));
      } else if (beforeLoops && op->kind == OpKind::CopyIssue && !loadsFragment) {
        op->attributes["when"] = lessThan(constant(0), ir::variable("key_tiles")); // else nothing would wait for it
      } else if (beforeLoops && op->kind == OpKind::LoadFragment) {
        appendCommit(ops, "pipeline-loads: the group of Q");
        if (op->operand("src").buffer->overlays.empty()) { // the rings are free: K and V need not wait for Q
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
    if (kernel.hasConstant("kRefill"))
      return Refill(kernel.constant("kRefill"));
    return kernel.backend == "scalar" ? Refill::Joint : Refill::Split;
  }

  /// The b of the loop's product of this form; null where there is none.
  static const Buffer *operandOf(const Op &loop, llvm::StringRef form) {
    const Op *product =
        firstOf(loop.body, [&](const Op &op) { return op.kind == OpKind::Mma && op.text("form") == form; });
    return product ? product->operand("b").buffer : nullptr;
  }

  bool copiesOperands(const Op &loop) const {
    const Buffer *const k = operandOf(loop, "abt"), *const v = operandOf(loop, "ab");
    bool copies = k && v && k != v && countOf(loop.body, OpKind::CopyIssue) == 2;
    for (const Buffer *ring : {k, v})
      copies &= ring && ring->isRing && ring->stages == stages && firstOf(loop.body, [&](const Op &op) {
                  return op.kind == OpKind::CopyIssue && op.operand("dst").buffer == ring;
                });
    return copies;
  }

  /// Takes the copies of K and V out of every loop; those of the last one are the pattern for all others.
  void takeTemplates(Block &body) {
    for (std::unique_ptr<Op> &loop : body.ops) {
      if (loop->kind != OpKind::Loop)
        continue;
      variable = loop->text("variable").str();
      const Buffer *const k = operandOf(*loop, "abt");
      for (std::unique_ptr<Op> &op : loop->body.ops)
        if (op->kind == OpKind::CopyIssue)
          (op->operand("dst").buffer == k ? copyK : copyV) = std::move(op);
      llvm::erase_if(loop->body.ops, [](const std::unique_ptr<Op> &op) { return !op; });
    }
  }

  std::unique_ptr<Op> make(OpKind kind, llvm::StringRef note) const {
    auto op = std::make_unique<Op>(kind);
    op->location = copyK->location;
    op->note = note.str();
    return op;
  }

  /// The copy of `position`, only if such a tile exists.
  std::unique_ptr<Op> copyOf(const Op &pattern, Expr position, llvm::StringRef note) const {
    std::unique_ptr<Op> op = make(OpKind::CopyIssue, note);
    op->operands = pattern.operands;
    op->operands[0].position = position;
    op->attributes = pattern.attributes;
    op->attributes["row"] = pattern.expr("row").substitute(variable, position);
    op->attributes["when"] = lessThan(position, ir::variable("key_tiles"));
    return op;
  }

  void appendCommit(std::vector<std::unique_ptr<Op>> &ops, llvm::StringRef note = {}) const {
    if (isAsync)
      ops.push_back(make(OpKind::CopyCommit, note));
  }

  void appendWait(std::vector<std::unique_ptr<Op>> &ops, llvm::StringRef note) const {
    if (isAsync) {
      ops.push_back(make(OpKind::CopyWait, note));
      ops.back()->attributes["pending"] = int64_t(-1);
    }
  }

  void appendPlace(std::vector<std::unique_ptr<Op>> &ops, llvm::StringRef name) const {
    ops.push_back(make(OpKind::Place, {}));
    ops.back()->attributes["name"] = name.str();
  }

  void buildPrologue(std::vector<std::unique_ptr<Op>> &ops) const {
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

  std::vector<std::unique_ptr<Op>> splitStep(std::vector<std::unique_ptr<Op>> body) const {
    const Expr j = ir::variable(variable);
    std::vector<std::unique_ptr<Op>> ops;
    appendWait(ops, "pipeline-loads: K(j) has arrived");
    appendPlace(ops, "after_load");
    ops.push_back(
        copyOf(*copyV, j + ir::variable("kStages") - constant(1), "pipeline-loads: V into the slot that P V left"));
    appendCommit(ops);
    for (std::unique_ptr<Op> &op : body) {
      const bool readsK = op->kind == OpKind::Mma && op->text("form") == "abt";
      ops.push_back(std::move(op));
      if (!readsK)
        continue;
      appendWait(ops, "pipeline-loads: V(j) has arrived");
      appendPlace(ops, "after_load");
      ops.push_back(copyOf(*copyK, j + ir::variable("kStages"), "pipeline-loads: K into the slot that Q K^T left"));
      appendCommit(ops);
    }
    return ops;
  }

  void appendJointCopies(std::vector<std::unique_ptr<Op>> &ops) const {
    const Expr ahead = ir::variable(variable) + ir::variable("kStages") - constant(1);
    ops.push_back(copyOf(*copyK, ahead, "pipeline-loads: K and V into the slots of the step before"));
    ops.push_back(copyOf(*copyV, ahead, {}));
    appendCommit(ops);
  }

  std::vector<std::unique_ptr<Op>> jointStep(std::vector<std::unique_ptr<Op>> body) const {
    std::vector<std::unique_ptr<Op>> ops;
    if (refill == Refill::Joint)
      appendJointCopies(ops);
    appendWait(ops, "pipeline-loads: K(j) and V(j) have arrived");
    appendPlace(ops, "after_load");
    for (std::unique_ptr<Op> &op : body) {
      const bool readsK = op->kind == OpKind::Mma && op->text("form") == "abt";
      ops.push_back(std::move(op));
      if (refill == Refill::Late && readsK)
        appendJointCopies(ops);
    }
    return ops;
  }

  const int64_t stages;
  const Refill refill;
  const bool joint;
  bool isAsync = false;
  bool loadsFragment = false; ///< Q goes to registers, behind a wait of its own
  std::string variable;
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
