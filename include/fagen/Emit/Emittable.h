// fagen: the text of a program that comes as IR.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Emit/Kernel.h"
#include "fagen/Support/Diagnostics.h"

namespace fagen {

/// Whether a verified program is one that has a text: its kernels are proved, and take the parameters of attention.
/// Errors say what it lacks.
bool checkEmittable(const ir::Program &program, Diagnostics &diags);

/// Whether a kernel of it has parameters of its own.
bool takesOwnArgument(const ir::Program &program);

/// The CUDA text of a program that checkEmittable() accepts.
KernelText emitProgram(const ir::Program &program, Instrument instrument = Instrument::None);

} // namespace fagen
