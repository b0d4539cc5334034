// fagen: reports what a pass needs and a kernel lacks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ShapeCheck.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

bool ShapeCheck::needs(bool holds, const llvm::Twine &what, const Location &location) {
  if (holds)
    return true;
  const std::string message =
      ("pass '" + pass + "' needs " + what + "; kernel '" + kernel.symbol + "' lacks that").str();
  const Location &place = location.isKnown() || location.source.isValid() ? location : kernel.location;
  if (context.variant)
    context.diags.internalError("the order of passes", message, place);
  else
    context.diags.error(place, message + ". Run the passes before it first, each once");
  return false;
}

const Op *fagen::firstOf(const Block &block, llvm::function_ref<bool(const Op &)> isWanted) {
  for (const std::unique_ptr<Op> &op : block.ops)
    if (isWanted(*op))
      return op.get();
  return nullptr;
}

const Op *fagen::firstOf(const Block &block, OpKind kind) {
  return firstOf(block, [kind](const Op &op) { return op.kind == kind; });
}

static Ops copiesOf(const Block &block) {
  Ops copies;
  for (const std::unique_ptr<Op> &op : block.ops)
    if (op->kind == OpKind::CopyIssue)
      copies.push_back(clone(*op));
  return copies;
}

static bool isSameCopy(const std::unique_ptr<Op> &a, const std::unique_ptr<Op> &b) {
  auto isSameOperand = [](const Operand &a, const Operand &b) {
    return a.buffer == b.buffer && a.position == b.position;
  };
  return llvm::equal(a->operands, b->operands, isSameOperand) && a->attributes == b->attributes;
}

bool fagen::goesOnCopying(const Op &first, const Op &second) {
  const LoopOp before(first), after(second);
  Ops copies = copiesOf(second.body);
  for (std::unique_ptr<Op> &copy : copies)
    substitute(*copy, after.variable(), variable(before.variable()));
  return after.begin() == before.end() && llvm::equal(copiesOf(first.body), copies, isSameCopy);
}

unsigned fagen::countOf(const Block &block, OpKind kind) {
  unsigned count = 0;
  walk(block, [&](const Op &op) { count += op.kind == kind; });
  return count;
}
