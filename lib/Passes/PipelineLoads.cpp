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
// K stands for the rings that the first product of a step reads, V for the others; where there are no others, copies
// are joint. So one stage already has K(j+1) in flight under softmax and P V, and V(j) under Q K^T (FlashAttention-2's
// order). Copies past the last tile are skipped, but their groups are committed all the same: a wait counts groups, and
// the count must not depend on the tile. Waits get their exact counts from resolveWaits. A synchronous copy (ld_st)
// stands at the same places without commits and waits.
//
// Steps without a product run ahead alike, K being what their first reader of a ring reads. What is copied outside of
// loops is awaited where it is read first: in the first step, before it, or, where a problem may have no step, after
// it.

#include "fagen/IR/Products.h"
#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "fagen/Target/MmaInstrs.h"

#include "ShapeCheck.h"
#include "copies/Awaited.h"
#include "fagen/Analysis/Timeline.h"
#include "fagen/Spec/Spec.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

#include <optional>
#include <utility>

using namespace fagen;
using namespace fagen::ir;

namespace {

class LoadPipeliner {
public:
  explicit LoadPipeliner(Kernel &kernel) : kernel(kernel), refill(refillOf(kernel)) {}

  /// Each loop copies what its ops read, each into a ring, all with as many slots, and nothing is ahead or awaited yet.
  bool fits(const Role &role, ShapeCheck &shape) const {
    const Op *before = nullptr;
    for (const std::unique_ptr<Op> &op : role.body.ops) {
      if (op->kind != OpKind::Loop)
        continue;
      const bool goesOn = before ? goesOnCopying(*before, *op) : LoopOp(std::as_const(*op)).begin() == constant(0);
      if (!shape.needs(copiesOperands(*op),
                       "loops that copy what their own ops read, each once into a ring at the loop's position, and "
                       "all into rings of as many slots",
                       op->location) ||
          !shape.needs(goesOn, "loops from 0 on, each with the copies of the one before", op->location) ||
          !shape.needs(refill != Refill::Split || !before || !firstProduct(*op) ||
                           ringsOfFirst(*before) == ringsOfFirst(*op),
                       "loops whose first products read the same rings, where refill is split", op->location) ||
          !shape.needs(refill != Refill::Split || !firstProduct(*op) || readsApart(*op) ||
                           ringsOfFirst(*op).size() == countOf(op->body, OpKind::CopyIssue),
                       "steps that are done with what their first product reads, where refill is split", op->location))
        return false;
      before = op.get();
    }
    return shape.needs(copiesAlike(role), "copies by threads, of one kind and under no condition") &&
           shape.needs(countOf(role.body, OpKind::CopyCommit) + countOf(role.body, OpKind::CopyWait) == 0,
                       "copies that no copy_commit and no copy_wait follows yet");
  }

  void run(Block &body) {
    takeTemplates(body);
    stages = CopyIssueOp(*first.front()).dst().buffer->stages;
    joint = refill != Refill::Split || rest.empty() || !hasProduct;
    tiles = LoopOp(*lastLoop(body)).end();
    isAsync = isThreadAsyncCopy(*first.front());
    Ops ops;
    bool beforeLoops = true, hasPrologue = false, isLoaded = false;
    loadsEarly = readsEarly(body);
    OpenCopies open; // what nobody has awaited yet
    for (std::unique_ptr<Op> &op : body.ops) {
      if (const auto loop = dynCast<LoopOp>(*op)) {
        if (!std::exchange(hasPrologue, true))
          buildPrologue(ops);
        beforeLoops = false;
        const Expr j = ir::variable(loop->variable());
        op->body.ops = joint ? jointStep(std::move(op->body.ops), j) : splitStep(std::move(op->body.ops), j);
      } else if (const auto copy = dynCast<CopyIssueOp>(*op);
                 copy && beforeLoops && !loadsEarly && !isReadOutside(body, copy->dst().buffer)) {
        copy->setWhen(lessThan(constant(0), tiles)); // else nothing would wait for it
      } else if (beforeLoops && readsAny(*op, open) && !std::exchange(isLoaded, true)) {
        appendCommit(ops, "pipeline-loads: the group of Q"); // and of what else is loaded after it
        if (!readsOverlay(*op)) {                            // the rings are free: K and V need not wait for Q
          hasPrologue = true;
          buildPrologue(ops);
        }
        appendWait(ops, "pipeline-loads: Q has arrived");
        open.clear();
      } else {
        await(ops, *op, open);
        addCopied(*op, open);
      }
      ops.push_back(std::move(op));
    }
    body.ops = std::move(ops);
  }

  /// Of a role without such loops.
  void awaitAll(Block &body) {
    isAsync = firstOf(body, isThreadAsyncCopy);
    Ops ops;
    OpenCopies open;
    for (std::unique_ptr<Op> &op : body.ops) {
      await(ops, *op, open);
      addCopied(*op, open);
      ops.push_back(std::move(op));
    }
    body.ops = std::move(ops);
  }

private:
  /// Before the first op that reads of what is open.
  void await(Ops &ops, const Op &op, OpenCopies &open) const {
    if (!readsAny(op, open))
      return;
    if (isAsync)
      ops.push_back(
          makeCopyCommit({.location = op.location, .note = "pipeline-loads: the group of what is read next"}));
    if (isAsync)
      ops.push_back(makeCopyWait({.pending = -1, .location = op.location, .note = "pipeline-loads: it has arrived"}));
    open.clear();
  }

  /// IR from text may lack the option.
  static Refill refillOf(const Kernel &kernel) {
    return valueOr(kernel.options.refill, mmaFamily(kernel.backend).isCollective ? Refill::Split : Refill::Joint);
  }

  static bool isAnyProduct(const Op &op) { return asProduct(op).has_value(); }

  /// Whether a product has it as an operand.
  static bool reads(const Op &op, const Buffer *ring) {
    const std::optional<Product> product = asProduct(op);
    return product && (product->a == ring || product->b == ring);
  }

  static bool readsOverlay(const Op &op) {
    return llvm::any_of(op.operands, [](const Operand &operand) { return operand.buffer && operand.buffer->overlays; });
  }

  static bool copiesOperands(const Op &loop) {
    llvm::SmallPtrSet<const Buffer *, 4> rings;
    unsigned slots = 0;
    bool isSound = true;
    for (const std::unique_ptr<Op> &op : loop.body.ops)
      if (const auto copy = dynCast<CopyIssueOp>(std::as_const(*op))) {
        const Buffer *const ring = copy->dst().buffer;
        slots = slots == 0 ? ring->stages.number() : slots;
        isSound &= ring->isRing && ring->stages == slots && rings.insert(ring).second &&
                   copy->dst().position == ir::variable(LoopOp(loop).variable()) &&
                   firstOf(loop.body, [&](const Op &other) { return takes(other, ring); });
      }
    for (const std::unique_ptr<Op> &op : loop.body.ops)
      if (isAnyProduct(*op))
        for (const Operand &operand : op->operands)
          isSound &= !operand.buffer || !operand.buffer->isRing || rings.contains(operand.buffer);
    return isSound && slots != 0;
  }

  static const Op *firstProduct(const Op &loop) { return firstOf(loop.body, isAnyProduct); }

  /// Of the rings that a loop fills those that the first product of a step reads.
  static llvm::SmallPtrSet<const Buffer *, 4> ringsOfFirst(const Op &loop) {
    const Op *const first = firstProduct(loop);
    llvm::SmallPtrSet<const Buffer *, 4> rings;
    forEach<CopyIssueOp>(loop.body, [&](CopyIssueOp<const Op> copy) {
      if (first && reads(*first, copy.dst().buffer))
        rings.insert(copy.dst().buffer);
    });
    return rings;
  }

  /// Whether no other product of a step reads a ring that its first one reads.
  static bool readsApart(const Op &loop) {
    const Op *const first = firstProduct(loop);
    bool isApart = true;
    walk(loop.body, [&](const Op &op) {
      if (!isAnyProduct(op) || &op == first)
        return;
      for (const Operand &operand : op.operands)
        isApart &= !operand.buffer || !operand.buffer->isRing || !reads(*first, operand.buffer);
    });
    return isApart;
  }

  /// A wait counts groups of one kind, and copies get conditions of their own.
  static bool copiesAlike(const Role &role) {
    std::optional<CopyKind> kind;
    bool isAlike = true;
    forEach<CopyIssueOp>(role.body, [&](CopyIssueOp<const Op> copy) {
      isAlike &= copy.kind() != CopyKind::Bulk && !copy->has(Attr::When);
      if (!copy.dst().buffer->isRing)
        return;
      isAlike &= copy.kind() == kind.value_or(copy.kind());
      kind = copy.kind();
    });
    return isAlike;
  }

  /// Takes the copies out of every loop; those of the last one are the pattern for all others.
  void takeTemplates(Block &body) {
    for (std::unique_ptr<Op> &op : body.ops) {
      const auto loop = dynCast<LoopOp>(*op);
      if (!loop)
        continue;
      variable = loop->variable().str();
      first.clear();
      rest.clear();
      const Op *const product = firstProduct(*op);
      hasProduct = product;
      for (std::unique_ptr<Op> &inner : op->body.ops)
        if (inner->kind == OpKind::CopyIssue)
          (!product || reads(*product, CopyIssueOp(*inner).dst().buffer) ? first : rest).push_back(std::move(inner));
      llvm::erase_if(op->body.ops, [](const std::unique_ptr<Op> &inner) { return !inner; });
    }
  }

  /// "K and V", of rings %k and %v.
  static std::string namesOf(llvm::ArrayRef<const Ops *> lists, llvm::StringRef suffix = "") {
    std::string names;
    for (const Ops *list : lists)
      for (const std::unique_ptr<Op> &copy : *list)
        names += (names.empty() ? "" : " and ") + llvm::StringRef(CopyIssueOp(*copy).dst().buffer->name).upper() +
                 suffix.str();
    return names;
  }

  /// The copies of `position`, only if there is such a tile. The note stands at the first.
  void appendCopies(Ops &ops, const Ops &patterns, const Expr &position, std::string note) const {
    for (const std::unique_ptr<Op> &pattern : patterns) {
      std::unique_ptr<Op> op = clone(*pattern);
      substitute(*op, variable, position);
      const CopyIssueOp copy(*op);
      copy.dst().position = position;
      copy.setWhen(lessThan(position, tiles));
      op->note = std::exchange(note, "");
      ops.push_back(std::move(op));
    }
  }

  /// Each with a note of its own.
  void appendAhead(Ops &ops, const Ops &patterns, int64_t position) const {
    for (const std::unique_ptr<Op> &pattern : patterns) {
      Ops one;
      one.push_back(clone(*pattern));
      appendCopies(ops, one, constant(position), "pipeline-loads: " + namesOf({&one}) + " runs ahead");
    }
  }

  Expr slots() const { return stages.expr(); }

  void appendCommit(Ops &ops, std::string note = "") const {
    if (isAsync)
      ops.push_back(makeCopyCommit({.location = first.front()->location, .note = std::move(note)}));
  }

  void appendWait(Ops &ops, std::string note) const {
    if (isAsync)
      ops.push_back(makeCopyWait({.pending = -1, .location = first.front()->location, .note = std::move(note)}));
  }

  void appendLoaded(Ops &ops) const {
    ops.push_back(makePlace({.name = PlaceName::AfterLoad, .location = first.front()->location}));
  }

  void buildPrologue(Ops &ops) const {
    for (int64_t position = 0; position < stages; ++position) {
      if (joint && position == stages - 1)
        break;
      if (!joint && position > 0) {
        appendAhead(ops, rest, position - 1);
        appendCommit(ops);
      }
      appendAhead(ops, first, position);
      if (joint)
        appendAhead(ops, rest, position);
      appendCommit(ops);
    }
    if (joint && stages == 1 && !loadsEarly) // else Q's group is closed already
      appendCommit(ops, "pipeline-loads: the group of Q");
  }

  bool readsFirst(const Op &op) const {
    return llvm::any_of(first, [&](const auto &copy) {
      const Buffer *const ring = CopyIssueOp(*copy).dst().buffer;
      return hasProduct ? reads(op, ring) : takes(op, ring);
    });
  }

  Ops splitStep(Ops body, const Expr &j) const {
    Ops ops;
    appendWait(ops, "pipeline-loads: " + namesOf({&first}, "(j)") + " has arrived");
    appendLoaded(ops);
    appendCopies(ops, rest, j + slots() - constant(1),
                 "pipeline-loads: " + namesOf({&rest}) + " into the slot that P V left");
    appendCommit(ops);
    for (std::unique_ptr<Op> &op : body) {
      const bool isFirst = readsFirst(*op);
      ops.push_back(std::move(op));
      if (!isFirst)
        continue;
      appendWait(ops, "pipeline-loads: " + namesOf({&rest}, "(j)") + " has arrived");
      appendLoaded(ops);
      appendCopies(ops, first, j + slots(), "pipeline-loads: " + namesOf({&first}) + " into the slot that Q K^T left");
      appendCommit(ops);
    }
    return ops;
  }

  void appendJointCopies(Ops &ops, const Expr &j) const {
    const Expr ahead = j + slots() - constant(1);
    appendCopies(ops, first, ahead,
                 "pipeline-loads: " + namesOf({&first, &rest}) + " into the slots of the step before");
    appendCopies(ops, rest, ahead, "");
    appendCommit(ops);
  }

  Ops jointStep(Ops body, const Expr &j) const {
    Ops ops;
    bool hasCopies = refill == Refill::Joint || stages == 1; // a single slot is free only between steps
    if (hasCopies)
      appendJointCopies(ops, j);
    appendWait(ops, "pipeline-loads: " + namesOf({&first, &rest}, "(j)") + " have arrived");
    appendLoaded(ops);
    for (std::unique_ptr<Op> &op : body) {
      const bool isFirst = readsFirst(*op);
      ops.push_back(std::move(op));
      if (isFirst && !std::exchange(hasCopies, true))
        appendJointCopies(ops, j);
    }
    return ops;
  }

  const Kernel &kernel;
  const Refill refill;
  Count stages = 0;
  bool joint = false;
  bool isAsync = false;
  bool hasProduct = false; ///< steps multiply
  bool loadsEarly = false; ///< Q is read before the loops, after a wait of its own
  std::string variable;    ///< of the loop that the patterns are from
  Expr tiles;              ///< where the last loop ends
  Ops first, rest;         ///< copies of a step: of what its first product reads, and of the rest
};

} // namespace

/// Whether the role has a loop that copies: without one there is nothing to run ahead.
static bool hasLoads(const Role &role) {
  return firstOf(role.body,
                 [](const Op &op) { return op.kind == OpKind::Loop && countOf(op.body, OpKind::CopyIssue); });
}

/// Whether copies are awaited already, as a text may say.
static bool awaits(const Role &role) {
  return countOf(role.body, OpKind::CopyCommit) + countOf(role.body, OpKind::CopyWait) != 0;
}

bool fagen::pipelineLoads(Kernel &kernel, PassContext &context) {
  const bool isAhead = kernel.roles.size() > 1; // whoever loads runs ahead by itself
  if (!isAhead && hasLoads(kernel.roles.front())) {
    LoadPipeliner pipeliner(kernel);
    ShapeCheck shape(kernel, context, "pipeline-loads");
    if (!pipeliner.fits(kernel.roles.front(), shape))
      return false;
    pipeliner.run(kernel.roles.front().body);
  } else if (!isAhead && !awaits(kernel.roles.front())) {
    LoadPipeliner(kernel).awaitAll(kernel.roles.front().body);
  }
  if (!isAhead)
    resolveWaits(kernel);
  kernel.phase = Phase::Pipelined;
  return !isAhead;
}
