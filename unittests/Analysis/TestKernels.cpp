// fagen: kernels for tests of the hazard analysis.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "TestKernels.h"

using namespace fagen;
using namespace fagen::test;

Lowering::Lowering(const Shape &shape, BarrierPolicy policy, std::vector<std::string> places) {
  variant.name = shape.name;
  variant.symbol = std::string("fagen_") + shape.name;
  variant.target = lookupTarget("sm_89");
  variant.problem.headDimQK = variant.problem.headDimV = shape.headDim;
  variant.problem.mask = Mask::Causal;
  Schedule &schedule = variant.schedule;
  schedule.tileRows = shape.tileRows;
  schedule.tileKeys = shape.tileKeys;
  schedule.warps = shape.warps;
  schedule.mma = shape.mma;
  schedule.copy = shape.copy;
  schedule.stages = shape.stages;
  schedule.swizzle = shape.mma == Mma::Scalar ? Swizzle::None : shape.mma == Mma::Wmma ? Swizzle::Pad : Swizzle::Xor;
  schedule.barriers = policy;
  schedule.barrierPlaces = std::move(places);
  schedule.vectorBytes = shape.vectorBytes;
  schedule.refill = shape.mma == Mma::Scalar ? Refill::Joint : Refill::Split;
  schedule.qIn = shape.qIn;
  schedule.reduce = shape.reduce;
  schedule.rowWarps = shape.rowWarps ? shape.rowWarps : shape.warps;
  schedule.keyWarps = shape.keyWarps;
}

void Lowering::lower() {
  PassContext context = this->context();
  resolveOptions(kernel, context);
  buildTiles(kernel, context);
  splitMaskLoops(kernel, context);
  pipelineLoads(kernel, context);
  assignLayouts(kernel, context);
  allocateShared(kernel, context);
}

unsigned Lowering::countIn(unsigned loop, llvm::StringRef scope) {
  unsigned found = 0, loops = 0;
  for (const std::unique_ptr<ir::Op> &op : body().ops)
    if (op->kind == ir::OpKind::Loop && loops++ == loop)
      for (const std::unique_ptr<ir::Op> &inner : op->body.ops)
        found += inner->kind == ir::OpKind::Barrier && inner->text(ir::Attr::Scope) == scope;
  return found;
}

unsigned Lowering::count(llvm::StringRef scope) {
  unsigned found = 0;
  for (const ir::Op *op : sites())
    found += op->kind == ir::OpKind::Barrier && op->text(ir::Attr::Scope) == scope;
  return found;
}

std::vector<ir::Op *> Lowering::sites() {
  std::vector<ir::Op *> found;
  ir::walk(body(), [&](ir::Op &op) {
    if (opInfo(op.kind).hasSite)
      found.push_back(&op);
  });
  return found;
}

std::vector<Shape> fagen::test::shapes() {
  std::vector<Shape> list;
  for (Copy copy : {Copy::CpAsync, Copy::LdSt})
    for (unsigned stages : {1u, 2u, 3u}) {
      list.push_back({"prefill", Mma::MmaSync, copy, 64, 32, 4, stages});
      list.push_back({"staged", Mma::MmaSync, copy, 64, 64, 4, stages, 64, 0, 1, OperandPlace::Registers});
      list.push_back({"split_keys", Mma::MmaSync, copy, 16, 64, 4, stages, 64, 1, 4});
      list.push_back({"grid", Mma::MmaSync, copy, 32, 64, 4, stages, 64, 2, 2, OperandPlace::Registers});
      list.push_back({"one_warp", Mma::MmaSync, copy, 16, 32, 1, stages});
      list.push_back({"scalar", Mma::Scalar, copy, 32, 64, 4, stages});
      list.push_back({"wmma", Mma::Wmma, copy, 64, 32, 4, stages});
      list.push_back({"wmma_over", Mma::Wmma, copy, 32, 64, 2, stages, 64, 0, 1, OperandPlace::Registers});
      list.push_back({"scratch", Mma::Scalar, copy, 16, 32, 4, stages, 64, 0, 1, OperandPlace::Shared, Reduce::Shared});
    }
  list.push_back(
      {"unaligned", Mma::MmaSync, Copy::LdSt, 64, 32, 4, 2, 64, 0, 1, OperandPlace::Shared, Reduce::Warp, 2});
  return list;
}
