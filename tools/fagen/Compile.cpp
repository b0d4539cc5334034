// fagen: from a checked kernel to its sources and its plan.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Compile.h"

#include "fagen/Emit/BuildPlan.h"
#include "fagen/Emit/Emittable.h"
#include "fagen/Emit/Manifest.h"
#include "fagen/Support/Memory.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ThreadPool.h"

#include <numeric>

namespace fagen {

/// The checks of the spec must have seen what the kernel takes.
static void checkMeasured(const ir::Kernel &kernel, const Variant &variant, Diagnostics &diags) {
  const uint64_t measured = variant.schedule.shared.total;
  if (kernel.sharedBytes != measured)
    diags.internalError("allocate-shared",
                        variant.name + " takes " + llvm::Twine(kernel.sharedBytes) + " B of shared memory, but " +
                            llvm::Twine(measured) + " B when the spec was checked: a pass has added a buffer too late",
                        variant.location);
}

namespace {

struct LoweredVariant {
  CompiledVariant compiled;
  std::optional<VariantPlan> plan; ///< nothing when the passes were stopped
};

} // namespace

/// The kernel's variant number `order`, its program as far as the runner's passes need it. Nothing after a reported
/// mistake.
static std::optional<LoweredVariant> lowerVariant(const Variant &variant, unsigned order, Instrument instrument,
                                                  std::unique_ptr<ir::Program> program, const Arranged &arranged,
                                                  PipelineRunner &runner, Diagnostics &diags) {
  LoweredVariant result;
  result.compiled.variant = &variant;
  result.compiled.program = std::move(program);
  PassContext context{.diags = diags, .variant = &variant, .listing = &llvm::outs(), .arranged = arranged};
  PipelineResult reached = runner.run(*result.compiled.program, context);
  if (reached == PipelineResult::Failed)
    return std::nullopt;
  result.compiled.lastPass = runner.reached().str();
  const ir::Kernel &lowered = *result.compiled.program->kernels.front();
  if (reached == PipelineResult::Stopped || lowered.phase != ir::Phase::Verified)
    return result;
  checkMeasured(lowered, variant, diags);
  if (variant.schedule.isSplit() && instrument != Instrument::None) {
    diags.error(variant.schedule.locationOf("split"),
                "a kernel whose keys are split cannot be instrumented yet; that takes split = 1");
    return std::nullopt;
  }
  if (variant.schedule.number(OptionKey::Cluster) > 1 && instrument != Instrument::None) {
    diags.error(variant.schedule.locationOf("cluster"),
                "a kernel whose CTAs run in clusters cannot be instrumented yet; that takes cluster = 1");
    return std::nullopt;
  }
  KernelText text = emitProgram(*result.compiled.program, instrument);
  result.compiled.source = std::move(text.source);
  result.plan = buildPlan(*result.compiled.program, std::move(text), instrument);
  result.plan->variant = &variant;
  result.plan->row = emitRow(*result.plan, order);
  return result;
}

/// Whether the passes only compute: nothing to print on the way, no times to add up.
static bool isSilent(const PipelineOptions &options) {
  return options.runPasses.empty() && options.printAfter.empty() && !options.printAfterAll && !options.timePasses;
}

// Variants are independent, so they are lowered side by side, each with diagnostics of its own. If one of those says
// anything, nothing is returned: the caller then goes through the variants in order, and messages come in order.
static std::vector<std::optional<LoweredVariant>>
lowerSideBySide(const KernelSpec &kernel, const PipelineOptions &options, Instrument instrument, Lowering &lowering) {
  std::vector<std::optional<LoweredVariant>> results(kernel.variants.size());
  std::vector<std::string> messages(results.size());
  // One type after the other, and of each one head dim after the other: problems that differ in these may need the same
  // proof, and one would wait for the other. Of these the longest proofs first: rings of more stages have more runs.
  std::vector<size_t> order(results.size());
  std::iota(order.begin(), order.end(), 0);
  auto placeOf = [&](size_t i) {
    const Variant &variant = kernel.variants[i];
    return std::tuple(variant.problem.dtype, variant.problem.headDimQK,
                      -int64_t(variant.schedule.number(OptionKey::Stages)), variant.scheduleIndex);
  };
  llvm::stable_sort(order, [&](size_t a, size_t b) { return placeOf(a) < placeOf(b); });
  PipelineOptions rest;
  rest.runPasses = passesBehindBuffers();
  const bool goesOn = options.stopAfter.empty() && !options.verifyEach;
  llvm::DefaultThreadPool pool;
  for (size_t i : order)
    pool.async([&, i] {
      takeLargePages();
      llvm::SourceMgr noSources;
      llvm::raw_string_ostream os(messages[i]);
      Diagnostics diags(noSources, os);
      const Variant &variant = kernel.variants[i];
      std::unique_ptr<ir::Program> begun = goesOn ? lowering.take(variant) : nullptr;
      PipelineRunner runner(begun ? rest : options, llvm::nulls());
      if (!begun)
        begun = beginProgram(variant);
      results[i] = lowerVariant(variant, i, instrument, std::move(begun), lowering.arrangedOf(variant), runner, diags);
    });
  pool.wait();
  if (llvm::any_of(messages, [](const std::string &text) { return !text.empty(); }))
    results.clear();
  return results;
}

std::optional<CompiledKernel> compileKernel(const KernelSpec &kernel, llvm::StringRef specName,
                                            const PipelineOptions &options, Instrument instrument, Lowering &lowering,
                                            PipelineRunner &runner, Diagnostics &diags) {
  std::vector<std::optional<LoweredVariant>> lowered;
  if (isSilent(options))
    lowered = lowerSideBySide(kernel, options, instrument, lowering);
  if (lowered.empty())
    for (const auto &[order, variant] : llvm::enumerate(kernel.variants))
      lowered.push_back(
          lowerVariant(variant, order, instrument, beginProgram(variant), lowering.arrangedOf(variant), runner, diags));
  if (diags.hasErrors())
    return std::nullopt;

  CompiledKernel compiled;
  compiled.spec = compiled.plan.kernel = &kernel;
  compiled.specName = compiled.plan.specName = specName.str();
  for (std::optional<LoweredVariant> &variant : lowered) {
    compiled.variants.push_back(std::move(variant->compiled));
    if (variant->plan)
      compiled.plan.variants.push_back(std::move(*variant->plan));
  }
  return compiled;
}

} // namespace fagen
