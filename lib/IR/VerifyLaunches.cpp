// fagen: the IR verifier: kernels that begin before the launch before them has ended.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "VerifierState.h"

#include "fagen/IR/Queries.h"

using namespace fagen;
using namespace fagen::ir;

static bool isAwaiting(const Op &op) { return op.kind == OpKind::AwaitLaunches; }

static unsigned countAwaiting(const Block &block) {
  unsigned count = 0;
  walk(block, [&](const Op &op) { count += isAwaiting(op); });
  return count;
}

static bool touchesGlobal(const Op &op) {
  return llvm::any_of(op.operands,
                      [](const Operand &operand) { return operand.buffer && operand.buffer->space == Space::Global; });
}

/// The first op of the role's body that may touch global memory, or the one that awaits launches.
static const Op *firstOfEither(const Role &role) {
  for (const std::unique_ptr<Op> &op : role.body.ops) {
    bool touches = touchesGlobal(*op);
    walk(op->body, [&](const Op &inner) { touches |= touchesGlobal(inner); });
    if (touches || isAwaiting(*op))
      return op.get();
  }
  return nullptr;
}

static void verifyRole(const Role &role, VerifierState &state) {
  if (const unsigned count = countAwaiting(role.body); count != 1)
    return state.defect(state.kernel.location, "role " + role.name + " awaits the launches before in " +
                                                   llvm::Twine(count) +
                                                   " places; each role of a kernel that does so "
                                                   "does in one");
  const Op *const first = firstOfEither(role);
  if (!first || !isAwaiting(*first))
    state.defect(first ? first->location : state.kernel.location,
                 "role " + role.name +
                     " may touch global memory before await_launches, while a launch before "
                     "still writes it; await_launches comes first, outside of loops");
}

void ir::verifyLaunches(VerifierState &state) {
  const Kernel &kernel = state.kernel;
  if (llvm::all_of(kernel.roles, [](const Role &role) { return countAwaiting(role.body) == 0; }))
    return;
  const bool readsAtHead = readsAtItsHead(kernel);
  for (const Role &role : kernel.roles) {
    verifyRole(role, state);
    if (readsAtHead && (role.body.ops.empty() || !isAwaiting(*role.body.ops.front())))
      state.defect(kernel.location,
                   "role " + role.name +
                       " awaits the launches before it only after lets read memory, or numbers that may "
                       "lie on the device; await_launches is its first op then");
  }
}
