// fagen: --emit=plan --shape: how long each variant will take, by the model of docs/Model.md.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Compile.h"
#include "fagen/Analysis/TimeModel.h"

namespace fagen {

/// Each variant at each shape, on the GPU that stands for `gpuTarget`, or where that is empty for the variant's target:
/// registers, occupancy, waves, clocks of a CTA's steps and microseconds. With `asJson` the same as JSON.
std::string emitModel(llvm::ArrayRef<PlannedVariant> variants, llvm::ArrayRef<model::Shape> shapes,
                      llvm::StringRef gpuTarget, bool asJson);

} // namespace fagen
