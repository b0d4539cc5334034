// fagen: --check-resources: what ptxas makes of each kernel, against the spec's require.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Compile.h"
#include "Nvcc.h"

namespace fagen {

/// One variant's figures, in the order of the plan; nothing for one that nvcc refused.
using KernelFigures = std::vector<std::optional<PtxasFigures>>;

/// Compiles every variant, several at a time. What nvcc refuses is reported.
KernelFigures measureResources(const CompiledKernel &kernel, const Nvcc &nvcc, Diagnostics &diags);

/// Prints a line a variant, and reports each that fails a gate. False when one does.
bool checkResources(const CompiledKernel &kernel, const KernelFigures &figures, SharedMeter &meter, Diagnostics &diags,
                    llvm::raw_ostream &os);

/// The first gate on resources that fails, "spills 456, which fails 'spills == 0'"; empty when all hold.
std::string failedResourceGate(const CompiledKernel &kernel, const KernelFigures &figures);

/// resources.json: the figures, for whoever wants to keep them. Not part of the generated set.
std::string emitResources(const CompiledKernel &kernel, const KernelFigures &figures);

} // namespace fagen
