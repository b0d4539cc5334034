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

#include "ShapeCheck.h"
#include "fagen/IR/ExprAnalysis.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

Buffer &addHeld(Kernel &kernel, const Buffer &q) {
  Buffer held = q;
  held.name = "q_held";
  held.space = Space::Fragment;
  held.rows = kernel.constant("kWarpRows");
  held.columns = 16 * kernel.constant("kHeldSlices");
  return kernel.addBuffer(std::move(held));
}

bool fits(const Kernel &kernel, const Role &math, ShapeCheck &shape) {
  const Buffer *const full = kernel.buffer("q_full");
  return shape.needs(kernel.buffer("q") && full && !kernel.buffer("q_held"),
                     "buffers %q and %q_full, and no %q_held") &&
         shape.needs(firstOf(math.body, [&](const Op &op) { return isWaitAt(op, full); }),
                     "a wait for %q_full in role " + math.name) &&
         shape.needs(kernel.constant("kHeldSlices") > 0, "a positive kHeldSlices");
}

void holdQueryOf(Kernel &kernel, Role &math) {
  Buffer &q = *kernel.buffer("q"), &held = addHeld(kernel, q);
  const Buffer *full = kernel.buffer("q_full");
  const Location location = llvm::find_if(kernel.constants, [](const Constant &constant) {
                              return constant.name == "kHeldSlices";
                            })->location;
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
  if (!kernel.hasConstant("kHeldSlices") || kernel.roles.size() != 2)
    return false;
  ShapeCheck shape(kernel, context, "hold-query");
  if (!fits(kernel, kernel.roles.back(), shape))
    return false;
  holdQueryOf(kernel, kernel.roles.back());
  return true;
}
