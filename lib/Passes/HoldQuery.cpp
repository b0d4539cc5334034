// fagen: pass hold-query: some slices of Q stay in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of scores read Q from shared memory in every step. With q_held = n a warp group keeps the first n slices of
// 16 columns of its rows for the whole tile: 4n registers a thread for n reads of 64 rows x 16 columns a step.
//
//   wait q_full; load_fragment q_held, q
//   fence; barrier of the warp             a bulk copy fills the slot again, or results of other lanes do
//   loop         mma_issue s, q, k, q_held

#include "fagen/IR/Queries.h"
#include "fagen/Passes/Passes.h"

#include "AskedNumbers.h"
#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

/// As many rows as a warp has of the products.
Buffer &addHeld(Kernel &kernel, const Role &math, const Buffer &q, const Constant &slices) {
  Buffer held = q;
  held.name = kernel.freshName(q.name + "_held");
  held.space = Space::Fragment;
  held.guard.reset();
  forEach<MmaIssueOp>(math.body, [&](MmaIssueOp<const Op> product) {
    if (product.a().buffer == &q)
      held.rows = product.acc().buffer->rows;
  });
  held.columns = countOf(kernel, constant(16) * variable(slices.name));
  return kernel.addBuffer(std::move(held));
}

bool fits(const Constant &asked, const Role &math, ShapeCheck &shape) {
  const Buffer *const q = sharedLeftOperand(math), *const full = q ? fullOf(*q) : nullptr;
  bool isHeld = false;
  forEach<MmaIssueOp>(math.body, [&](MmaIssueOp<const Op> product) { isHeld |= product.held().buffer != nullptr; });
  return shape.needs(full && !isHeld, "products of one guarded tile of rows that nobody holds in registers yet") &&
         shape.needs(firstOf(math.body, [&](const Op &op) { return isWaitAt(op, full); }),
                     "a wait for %" + (full ? full->name : "") + " in role " + math.name) &&
         shape.needs(asked.value > 0, "a positive " + asked.name);
}

void holdQueryOf(Kernel &kernel, const Constant &asked, Role &math) {
  Buffer &q = *sharedLeftOperand(math), &held = addHeld(kernel, math, q, asked);
  const Buffer *full = fullOf(q);
  const Location &location = asked.location;
  auto wait = llvm::find_if(math.body.ops, [&](const std::unique_ptr<Op> &op) { return isWaitAt(*op, full); });
  Ops ops;
  ops.push_back(makeLoadFragment({.dst = {&held, {}},
                                  .src = {&q, {}},
                                  .location = location,
                                  .note = "hold-query: what scores take from registers"}));
  ops.push_back(makeFence({.kind = FenceKind::AsyncProxy, .location = location}));
  ops.push_back(makeBarrier(
      {.scope = BarrierScope::Warp, .location = location, .note = "hold-query: all lanes have read the slot"}));
  insert(math.body.ops, std::next(wait), std::move(ops));
  forEach<MmaIssueOp>(math.body, [&](MmaIssueOp<> product) {
    if (product.a().buffer == &q)
      product.held() = {&held, {}};
  });
}

} // namespace

bool fagen::holdQuery(Kernel &kernel, PassContext &context) {
  const auto fillers = fillersOf(kernel), holders = multipliersBeside(kernel, fillers);
  const Constant *const asked = askedNumber(kernel, OptionKey::QHeld);
  if (fillers.empty() || !asked)
    return false;
  ShapeCheck shape(kernel, context, "hold-query");
  if (!shape.needs(!holders.empty(), "a role that multiplies") ||
      !llvm::all_of(holders, [&](const Role *math) { return fits(*asked, *math, shape); }))
    return false;
  for (Role *math : holders)
    holdQueryOf(kernel, *asked, *math);
  return true;
}
