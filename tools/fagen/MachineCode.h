// fagen: --cubins: machine code next to the sources of a kernel set.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Compile.h"
#include "Nvcc.h"

#include "fagen/Support/Diagnostics.h"
#include "fagen/Support/OutputSet.h"

namespace fagen {

/// Compiles each variant for those of the compute capabilities that run its text and that have none of a nearer target.
/// Adds the machine code to its plan and, as files below `directory`, to `files`. Reports text that nvcc refuses.
void addMachineCode(CompiledKernel &kernel, llvm::ArrayRef<unsigned> sms, const Nvcc &nvcc, llvm::StringRef directory,
                    OutputSet &files, Diagnostics &diags);

} // namespace fagen
