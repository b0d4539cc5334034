// fagen: what --emit=single writes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "CommandLine.h"
#include "Compile.h"
#include "fagen/Support/OutputSet.h"

#include <optional>

namespace fagen {

/// <output>.h and <output>.cu of the one kernel, of the variants that dispatch takes or that --variant names. Nothing
/// after a reported mistake.
std::optional<OutputSet> singleOutput(llvm::ArrayRef<CompiledKernel> kernels, const DriverOptions &options,
                                      Diagnostics &diags);

} // namespace fagen
