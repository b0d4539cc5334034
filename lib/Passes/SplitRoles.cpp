// fagen: pass split-roles: warps that load, and warps that compute.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Bulk copies need one thread, and that thread should wait for nothing but free slots. So the copies leave the body:
// role `load`, the first warps of the CTA, copies Q and then, in one loop over the tiles of all loops, for K and V;
// role `math` keeps the rest. Nothing orders the two yet: order-roles does when products have their final place.

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "ShapeCheck.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

class RoleSplitter {
public:
  explicit RoleSplitter(Kernel &kernel) : kernel(kernel), loadWarps(kernel.options.loadWarps->value) {}

  void run() {
    Role load{"load", 0, loadWarps, {}};
    Role math{"math", loadWarps, kernel.threads / 32 - loadWarps, std::move(kernel.roles.front().body)};
    load.registers = registersOf(kernel.options.loadRegisters);
    math.registers = registersOf(kernel.options.mathRegisters);
    takeCopies(math.body, load.body);
    kernel.roles.clear();
    kernel.roles.push_back(std::move(load));
    kernel.roles.push_back(std::move(math));
  }

private:
  static unsigned registersOf(const std::optional<Option<Count>> &asked) { return asked ? asked->value.number() : 0; }

  /// Those of a loop come in each of the loops that it was split into: the first ones stand for all tiles.
  void takeCopies(Block &from, Block &to) {
    Op *loop = nullptr;
    for (std::unique_ptr<Op> &op : from.ops) {
      if (op->kind == OpKind::CopyIssue)
        to.ops.push_back(std::move(op));
      else if (op->kind == OpKind::Loop)
        loop = takeFromLoop(*op, to, loop);
    }
    llvm::erase_if(from.ops, [](const std::unique_ptr<Op> &op) { return !op; });
  }

  static Op *takeFromLoop(Op &from, Block &to, Op *loop) {
    const bool isFirst = !loop;
    const LoopOp part(from);
    if (isFirst)
      to.ops.push_back(makeLoop(
          {.variable = part.variable().str(), .begin = part.begin(), .end = part.end(), .location = from.location}));
    loop = to.ops.back().get();
    LoopOp(*loop).setEnd(part.end());
    for (std::unique_ptr<Op> &op : from.body.ops)
      if (op->kind == OpKind::CopyIssue) {
        if (isFirst)
          loop->body.ops.push_back(std::move(op));
        op.reset();
      }
    llvm::erase_if(from.body.ops, [](const std::unique_ptr<Op> &op) { return !op; });
    return loop;
  }

  Kernel &kernel;
  const unsigned loadWarps;
};

bool isLoopOfCopies(const Op &op) { return op.kind == OpKind::Loop && firstOf(op.body, OpKind::CopyIssue); }

Ops copiesOf(const Block &block) {
  Ops copies;
  for (const std::unique_ptr<Op> &op : block.ops)
    if (op->kind == OpKind::CopyIssue)
      copies.push_back(clone(*op));
  return copies;
}

bool isSameCopy(const std::unique_ptr<Op> &a, const std::unique_ptr<Op> &b) {
  auto isSameOperand = [](const Operand &a, const Operand &b) {
    return a.buffer == b.buffer && a.position == b.position;
  };
  return llvm::equal(a->operands, b->operands, isSameOperand) && a->attributes == b->attributes;
}

/// Whether the second loop goes on with the copies of the first.
bool goesOn(const Op &first, const Op &second) {
  const LoopOp before(first), after(second);
  Ops copies = copiesOf(second.body);
  for (std::unique_ptr<Op> &copy : copies)
    substitute(*copy, after.variable(), variable(before.variable()));
  return after.begin() == before.end() && llvm::equal(copiesOf(first.body), copies, isSameCopy);
}

bool canSplit(const Kernel &kernel, const Role &role, ShapeCheck &shape) {
  const unsigned loadWarps = kernel.options.loadWarps->value;
  size_t copies = copiesOf(role.body).size();
  const Op *last = nullptr;
  for (const std::unique_ptr<Op> &op : role.body.ops) {
    if (!isLoopOfCopies(*op))
      continue;
    if (!shape.needs(!last || goesOn(*last, *op), "loops that go on with the copies of the loop before", op->location))
      return false;
    copies += copiesOf(op->body).size();
    last = op.get();
  }
  return shape.needs(copies == countOf(role.body, OpKind::CopyIssue), "copies outside of ifs and inner loops") &&
         shape.needs(loadWarps > 0 && loadWarps < kernel.threads / 32, "load_warps from 1 to all warps but one");
}

} // namespace

bool fagen::splitRoles(Kernel &kernel, PassContext &context) {
  ShapeCheck shape(kernel, context, "split-roles");
  if (!canSplit(kernel, kernel.roles.front(), shape))
    return false;
  RoleSplitter(kernel).run();
  return true;
}
