// fagen: the plan of a lowered variant, and its text for --emit=plan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Emit/Kernel.h"
#include "fagen/Emit/Plan.h"
#include "fagen/IR/IR.h"

#include "llvm/Support/raw_ostream.h"

namespace fagen {

/// What a program that checkEmittable() accepts takes, how its kernels are launched, and where their ops stand in the
/// text, of which only the ops are taken. The variant and the manifest's row are left to who knows them.
VariantPlan buildPlan(const ir::Program &program, KernelText text, Instrument instrument = Instrument::None);

/// For people: a paragraph a variant with buffers, barriers and estimates; then what was dropped and why.
void printPlan(const KernelPlan &plan, llvm::raw_ostream &os);

} // namespace fagen
