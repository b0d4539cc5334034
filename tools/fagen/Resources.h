// fagen: --check-resources: what ptxas makes of each kernel, against the spec's require.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Compile.h"
#include "Nvcc.h"

#include "fagen/Analysis/Resources.h"

namespace fagen {

/// Of a variant: the worst of its launches.
struct VariantFigures {
  unsigned registers = 0;   ///< a thread
  uint64_t spillBytes = 0;  ///< stored + loaded, of all launches together
  uint64_t sharedBytes = 0; ///< of a CTA, dynamic and static
  unsigned threads = 0;     ///< of the launch of which an SM holds fewest CTAs
  Occupancy occupancy = {}; ///< of that one
};

/// One variant's figures, in the order of the plan; nothing for one that nvcc refused.
using KernelFigures = std::vector<std::optional<VariantFigures>>;

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
