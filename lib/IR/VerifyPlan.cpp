// fagen: the IR verifier: launches that find the tiles of sequences.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "VerifierState.h"

#include "fagen/IR/ExprAnalysis.h"

using namespace fagen;
using namespace fagen::ir;

/// Whether the tensor has elements of that type and these extents.
static bool isTensorOf(const Buffer &tensor, ElementType type, llvm::ArrayRef<Expr> shape) {
  return tensor.type == type && !tensor.map && tensor.shape.size() == shape.size() &&
         llvm::all_of(llvm::zip(tensor.shape, shape), [](const auto &each) {
           const std::optional<Interval> apart = difference(std::get<0>(each), std::get<1>(each));
           return apart && apart->low == 0 && apart->high == 0;
         });
}

/// What it writes ends with its tensors, and nobody else in the launch sees them.
void ir::verifyPlan(const Op &op, VerifierState &state) {
  const PlanRowsOp plan(op);
  auto defect = [&](const llvm::Twine &message) { state.defect(op.location, "plan_rows: " + message); };
  const Kernel &kernel = state.kernel;
  const Buffer &order = *plan.order().buffer, &used = *plan.used().buffer;
  if (order.shape.size() != 1 || used.shape.size() != 1)
    return defect("%" + order.name + " and %" + used.name + " have an element a tile, and one a sequence");
  const Expr tiles = order.shape[0], sequences = used.shape[0];
  auto needs = [&](const Operand &operand, ElementType type, llvm::ArrayRef<Expr> shape, llvm::StringRef what) {
    if (!isTensorOf(*operand.buffer, type, shape))
      defect("%" + operand.buffer->name + " is not " + what);
  };
  needs(plan.rows(), ElementType::U32, {tiles + constant(1)}, "a u32 for each tile and one more");
  needs(plan.words(), ElementType::I32, {tiles, constant(4)}, "four i32 for each tile");
  needs(plan.order(), ElementType::U32, {tiles}, "a u32 for each tile");
  needs(plan.count(), ElementType::U32, {constant(1)}, "one u32");
  needs(plan.offsets(), ElementType::U32, {sequences + constant(1)}, "a u32 for each sequence and one more");
  needs(plan.keyOffsets(), ElementType::U32, {sequences + constant(1)}, "a u32 for each sequence and one more");
  needs(plan.used(), ElementType::U32, {sequences}, "a u32 for each sequence");
  needs(plan.usedKeys(), ElementType::U32, {sequences}, "a u32 for each sequence");
  if (kernel.roles.size() != 1 || kernel.roles.front().body.ops.size() != 1)
    defect("it is all that its kernel does");
}
