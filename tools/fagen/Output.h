// fagen: what the driver writes: kernel sets on disk, or one text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "CommandLine.h"
#include "Compile.h"
#include "Nvcc.h"
#include "fagen/Support/OutputSet.h"

namespace fagen {

/// Adds the files of a kernel below `directory`, the manifest last, and marks for removal what an older manifest there
/// lists and this run does not make. Takes the sources out of the kernel.
void addKernelFiles(CompiledKernel &kernel, llvm::StringRef directory, OutputSet &files);

/// Whether every name of --variant is one; reports those that are not.
bool checkVariants(llvm::ArrayRef<CompiledKernel> kernels, llvm::ArrayRef<std::string> names, Diagnostics &diags);

/// The text of --emit for everything after the front end. Nothing after a reported mistake.
std::optional<std::string> emitText(llvm::ArrayRef<CompiledKernel> kernels, const DriverOptions &options,
                                    const Nvcc &nvcc, Diagnostics &diags);

} // namespace fagen
