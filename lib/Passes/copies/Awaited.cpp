// fagen: what a role copies and nobody has awaited yet, and who reads it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Awaited.h"

#include "fagen/IR/Queries.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

void fagen::addCopied(const Op &op, OpenCopies &open) {
  if (const auto copy = dynCast<CopyIssueOp>(op))
    open.insert(copy->dst().buffer);
  forEach<CopyIssueOp>(op.body, [&](CopyIssueOp<const Op> copy) { open.insert(copy.dst().buffer); });
}

bool fagen::takes(const Op &op, const Buffer *buffer) {
  return op.kind != OpKind::CopyIssue &&
         llvm::any_of(op.operands, [&](const Operand &operand) { return operand.buffer == buffer; });
}

bool fagen::readsAny(const Op &op, const OpenCopies &open) {
  auto reads = [&](const Op &each) {
    return llvm::any_of(open, [&](const Buffer *buffer) { return takes(each, buffer); });
  };
  return reads(op) || firstOf(op.body, reads);
}

bool fagen::readsEarly(const Block &body) {
  OpenCopies open;
  for (const std::unique_ptr<Op> &op : body.ops) {
    if (op->kind == OpKind::Loop)
      return false;
    if (readsAny(*op, open))
      return true;
    addCopied(*op, open);
  }
  return false;
}

bool fagen::isReadOutside(const Block &body, const Buffer *copied) {
  return llvm::any_of(body.ops, [&](const std::unique_ptr<Op> &op) {
    return op && op->kind != OpKind::Loop && readsAny(*op, {copied});
  });
}
