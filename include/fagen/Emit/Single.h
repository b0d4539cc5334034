// fagen: a kernel set, or a program, as two files that need no fagen: a header in C, and CUDA that nvcc alone compiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Emit/Plan.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace fagen {

struct SingleFiles {
  std::string header; ///< <name>.h: what to compute, which kernel does, in C99
  std::string source; ///< <name>.cu: the kernels with what they use of the device library, and their launch
};

/// The two files of a kernel. `sources` are the texts of the plan's variants, in its order; `name` is the files' and
/// the prefix of what they declare, an identifier of C.
SingleFiles emitSingle(const KernelPlan &plan, llvm::ArrayRef<llvm::StringRef> sources, llvm::StringRef name);

/// Those of a program, `plan` having its row alone: a struct of its tensors and numbers, and its launches.
SingleFiles emitSingleProgram(const KernelPlan &plan, const ir::Program &program, llvm::StringRef source,
                              llvm::StringRef name);

} // namespace fagen
