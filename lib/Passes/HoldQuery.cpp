// fagen: pass hold-query: some slices of Q stay in registers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of scores read Q from shared memory in every step. With q_held = n a warp group keeps the first n slices of
// 16 columns of its rows for the whole tile: 4n registers a thread for n reads of 64 rows x 16 columns a step.
//
//   wait q_full; load_fragment q_held, q
//   fence; barrier of the warp             a bulk copy fills the slot again, or results of other lanes do
//   loop         mma_issue s, q, k, q_held

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

std::unique_ptr<Op> makeOp(OpKind kind, const Location &location) {
  auto op = std::make_unique<Op>(kind);
  op->location = location;
  return op;
}

bool isWaitFor(const Op &op, const Buffer *bar) { return op.kind == OpKind::Wait && op.operand("bar").buffer == bar; }

bool fits(const Kernel &kernel, const Role &math, ShapeCheck &shape) {
  const Buffer *const full = kernel.buffer("q_full");
  return shape.needs(kernel.buffer("q") && full && !kernel.buffer("q_held"),
                     "buffers %q and %q_full, and no %q_held") &&
         shape.needs(firstOf(math.body, [&](const Op &op) { return isWaitFor(op, full); }),
                     "a wait for %q_full in role " + math.name) &&
         shape.needs(kernel.constant("kHeldSlices") > 0, "a positive kHeldSlices");
}

void holdQueryOf(Kernel &kernel, Role &math) {
  Buffer &q = *kernel.buffer("q"), &held = addHeld(kernel, q);
  const Buffer *full = kernel.buffer("q_full");
  const Location location = llvm::find_if(kernel.constants, [](const Constant &constant) {
                              return constant.name == "kHeldSlices";
                            })->location;
  auto wait = llvm::find_if(math.body.ops, [&](const std::unique_ptr<Op> &op) { return isWaitFor(*op, full); });
  auto load = makeOp(OpKind::LoadFragment, location);
  load->operands = {{&held, {}}, {&q, {}}};
  load->note = "hold-query: what scores take from registers";
  auto fence = makeOp(OpKind::Fence, location);
  fence->attributes["kind"] = std::string("async_proxy");
  auto lanes = makeOp(OpKind::Barrier, location);
  lanes->attributes["scope"] = std::string("warp");
  lanes->note = "hold-query: all lanes have read the slot";
  for (std::unique_ptr<Op> *op : {&load, &fence, &lanes})
    wait = math.body.ops.insert(std::next(wait), std::move(*op));
  walk(math.body, [&](Op &op) {
    if (op.kind == OpKind::MmaIssue && op.operand("a").buffer == &q)
      op.operands[3] = {&held, {}};
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
