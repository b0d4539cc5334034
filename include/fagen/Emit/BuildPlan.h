// fagen: the plan of a lowered variant, and its text for --emit=plan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Emit/Kernel.h"
#include "fagen/Emit/Plan.h"
#include "fagen/IR/IR.h"

#include "llvm/Support/raw_ostream.h"

namespace fagen {

/// What the verified kernel of a variant takes and how it is launched; `combine`: its second launch, if it has one.
VariantPlan buildPlan(const ir::Kernel &kernel, const Variant &variant, Instrument instrument = Instrument::None,
                      const ir::Kernel *combine = nullptr);

/// For people: a paragraph a variant with buffers, barriers and estimates; then what was dropped and why.
void printPlan(const KernelPlan &plan, llvm::raw_ostream &os);

} // namespace fagen
