// fagen: the structure of a kernel.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/Queries.h"

using namespace fagen;
using namespace fagen::ir;

static bool isCopyOf(const Op &op, CopyKind kind) {
  const auto copy = dynCast<CopyIssueOp>(op);
  return copy && copy->kind() == kind;
}

bool ir::isBulkCopy(const Op &op) { return isCopyOf(op, CopyKind::Bulk); }

bool ir::isThreadAsyncCopy(const Op &op) { return isCopyOf(op, CopyKind::CpAsync); }

bool ir::isArrivalAt(const Op &op, const Buffer *bar) {
  const auto arrive = dynCast<ArriveOp>(op);
  return arrive && arrive->bar().buffer == bar;
}

bool ir::isWaitAt(const Op &op, const Buffer *bar) {
  const auto wait = dynCast<WaitOp>(op);
  return wait && wait->bar().buffer == bar;
}

int64_t ir::firstFreeBarrier(const Kernel &kernel) {
  int64_t free = 1;
  for (const Role &role : kernel.roles)
    walk(role.body, [&](const Op &op) {
      if (op.has(Attr::Id))
        free = std::max(free, op.integer(Attr::Id) + (op.has(Attr::Groups) ? op.integer(Attr::Groups) : 1));
    });
  return free;
}

Actor ir::actorOf(const Op &op) { return op.has(Attr::By) ? parse<Actor>(op.text(Attr::By)) : Actor::Role; }
