// fagen: --emit=plan --shape: how long each variant will take, by the model of docs/internals/Model.md.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Compile.h"
#include "fagen/Analysis/TimeModel.h"

namespace fagen {

/// The GPU that stands for a target ("sm_89"), or the one of this name, blanks and case aside ("rtx4090"); else null.
const GpuRates *findGpu(llvm::StringRef targetOrName);

/// Each variant at each shape, on `gpu`, or where that is null on the GPU that stands for the variant's target:
/// registers, occupancy, waves, clocks of a CTA's steps and microseconds. With `asJson` the same as JSON.
std::string emitModel(llvm::ArrayRef<const CompiledVariant *> variants, llvm::ArrayRef<model::Shape> shapes,
                      const GpuRates *gpu, bool asJson);

} // namespace fagen
