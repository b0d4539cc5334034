// fagen: a small kernel plan made by hand: two schedules and the fallback, two masks, one target.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Emit/Plan.h"

namespace fagen::test {

/// Keeps what the plan points to.
struct TestPlan {
  KernelSpec kernel;
  KernelPlan plan;

  explicit TestPlan(llvm::StringRef name = "tiny", llvm::StringRef target = "sm_89") {
    kernel.name = name.str();
    kernel.scheduleNames = {"prefill", "short", "unaligned"};
    SelectLine shortLine;
    shortLine.condition = {
        {SelectOp::Variable, int64_t(SelectVariable::SeqQ)}, {SelectOp::Constant, 32}, {SelectOp::Le}};
    shortLine.text = "seq_q <= 32";
    shortLine.scheduleIndex = 1;
    SelectLine otherwise;
    otherwise.text = "otherwise";
    kernel.select = {shortLine, otherwise};
    kernel.gates = {{"registers", "<=", 248, "", "registers <= 248", {}}};
    for (Mask mask : {Mask::None, Mask::Causal})
      for (unsigned schedule = 0; schedule < 3; ++schedule)
        kernel.variants.push_back(makeVariant(target, mask, schedule));
    kernel.variants.push_back(kernel.variants.front());
    kernel.variants.back().name += "_legacy";
    kernel.variants.back().dispatched = false;
    plan.kernel = &kernel;
    plan.specName = "tiny.fa";
    for (Variant &variant : kernel.variants) {
      variant.symbol = "fagen_" + variant.name + "_" + target.str();
      plan.variants.push_back(makePlan(variant));
    }
  }

private:
  Variant makeVariant(llvm::StringRef target, Mask mask, unsigned schedule) const {
    Variant variant;
    variant.name = kernel.name + "_" + kernel.scheduleNames[schedule] + "_f16_d64_" + toString(mask).str();
    variant.target = lookupTarget(target);
    variant.problem.headDimQK = variant.problem.headDimV = 64;
    variant.problem.mask = mask;
    variant.schedule.name = kernel.scheduleNames[schedule];
    variant.schedule.implicit = schedule == 2;
    variant.schedule.tileRows = schedule == 1 ? 16 : 128;
    variant.schedule.tileKeys = 64;
    variant.schedule.warps = 4;
    variant.scheduleIndex = schedule;
    return variant;
  }

  static VariantPlan makePlan(const Variant &variant) {
    VariantPlan plan;
    plan.variant = &variant;
    plan.sourcePath = variant.target->name.str() + "/" + variant.name + ".cu";
    plan.alignment = variant.schedule.implicit ? 2 : 16;
    plan.launches = {{variant.symbol, 128, 49152, /*ops=*/{}}};
    plan.buffers = {{"k", ir::Space::Shared, "f16", 64, 64, 2, 16384, 16384, "xor"}};
    plan.barriers = {{1, "barrier", "RAW k"}};
    plan.estimates = {96, 2, "shared memory"};
    return plan;
  }
};

} // namespace fagen::test
