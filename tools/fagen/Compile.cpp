// fagen: from a checked kernel to its sources and its plan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Compile.h"

#include "fagen/Emit/BuildPlan.h"
#include "fagen/Emit/Kernel.h"
#include "fagen/Spec/SharedMemory.h"

namespace fagen {

/// A program of one kernel that no pass has seen: resolve-options and build-tiles fill it from the variant.
static std::unique_ptr<ir::Program> beginProgram(const Variant &variant) {
  auto program = std::make_unique<ir::Program>();
  program->name = variant.name;
  program->kernels.push_back(std::make_unique<ir::Kernel>());
  return program;
}

/// What the spec's check promised must be what the kernel takes.
static void checkPromise(const ir::Kernel &kernel, const Variant &variant, Diagnostics &diags) {
  uint64_t promised = computeSharedMemory(variant.problem, variant.schedule).total;
  if (kernel.sharedBytes != promised)
    diags.internalError("allocate-shared",
                        variant.name + " takes " + llvm::Twine(kernel.sharedBytes) +
                            " B of shared memory; the check of the spec computed " + llvm::Twine(promised) + " B",
                        variant.location);
}

std::optional<CompiledKernel> compileKernel(const KernelSpec &kernel, llvm::StringRef specName, PipelineRunner &runner,
                                            Diagnostics &diags) {
  CompiledKernel compiled;
  compiled.spec = compiled.plan.kernel = &kernel;
  compiled.specName = compiled.plan.specName = specName.str();
  for (const Variant &variant : kernel.variants) {
    CompiledVariant &result = compiled.variants.emplace_back();
    result.variant = &variant;
    result.program = beginProgram(variant);
    PassContext context{.diags = diags, .variant = &variant, .listing = &llvm::outs()};
    PipelineResult reached = runner.run(*result.program, context);
    if (reached == PipelineResult::Failed)
      return std::nullopt;
    const ir::Kernel &lowered = *result.program->kernels.front();
    if (reached == PipelineResult::Stopped || lowered.phase != ir::Phase::Verified)
      continue;
    checkPromise(lowered, variant, diags);
    result.source = emitKernel(lowered, variant);
    compiled.plan.variants.push_back(buildPlan(lowered, variant));
  }
  return compiled;
}

} // namespace fagen
