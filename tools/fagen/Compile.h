// fagen: from a checked kernel to its sources and its plan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Emit/Kernel.h"
#include "fagen/Emit/Plan.h"
#include "fagen/IR/IR.h"
#include "fagen/Lower/Lower.h"
#include "fagen/Passes/PipelineRunner.h"

#include <memory>
#include <optional>

namespace fagen {

struct CompiledVariant {
  const Variant *variant = nullptr; ///< of a program: its name and target, and no problem
  std::unique_ptr<ir::Program> program;
  std::string lastPass; ///< when the passes were stopped, where the phase does not tell which are left
  std::string source;   ///< CUDA C++; empty when the passes were stopped
};

/// Refers to the KernelSpec, which must outlive it.
struct CompiledKernel {
  const KernelSpec *spec = nullptr;
  std::string specName;
  std::vector<CompiledVariant> variants; ///< in the order of the spec's
  KernelPlan plan;                       ///< empty when the passes were stopped
  /// Of programs, which are the last ones and none of the spec's.
  std::vector<std::unique_ptr<Variant>> programs;

  bool isProgram(const CompiledVariant &variant) const {
    return size_t(&variant - variants.data()) >= variants.size() - programs.size();
  }
};

/// Lowers every variant of a kernel, with the passes of the runner and its options; from where `lowering` has come, if
/// nobody wants to see the passes before. Nothing after a reported mistake.
std::optional<CompiledKernel> compileKernel(const KernelSpec &kernel, llvm::StringRef specName,
                                            const PipelineOptions &options, Instrument instrument, Lowering &lowering,
                                            PipelineRunner &runner, Diagnostics &diags);

/// A variant with the plan of its launches.
struct PlannedVariant {
  const CompiledVariant *variant;
  const VariantPlan *plan;
};

} // namespace fagen
