// fagen: --check-resources.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Resources.h"

#include "fagen/Spec/Gates.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/ThreadPool.h"

#include <fmt/format.h>

using namespace llvm;

namespace fagen {

/// Of all launches of a variant, from what ptxas says.
static std::optional<VariantFigures> figuresOf(const VariantPlan &plan, StringRef log) {
  VariantFigures worst;
  for (const LaunchPlan &launch : plan.launches) {
    const std::optional<PtxasFigures> its = parsePtxas(log, launch.symbol);
    if (!its)
      return std::nullopt;
    const uint64_t shared = launch.sharedBytes + its->staticShared;
    const Occupancy occupancy = occupancyOf(its->registers, launch.threads, shared, *plan.variant->target);
    worst.registers = std::max(worst.registers, its->registers);
    worst.spillBytes += its->spillBytes;
    worst.sharedBytes = std::max(worst.sharedBytes, shared);
    if (worst.threads == 0 || occupancy.ctasPerSm < worst.occupancy.ctasPerSm) {
      worst.threads = launch.threads;
      worst.occupancy = occupancy;
    }
  }
  return worst;
}

KernelFigures measureResources(const CompiledKernel &kernel, const Nvcc &nvcc, Diagnostics &diags) {
  std::vector<Nvcc::Result> results(kernel.variants.size());
  DefaultThreadPool pool;
  for (auto [variant, result] : zip(kernel.variants, results))
    pool.async([&variant = variant, &result = result, &nvcc] {
      result = nvcc.compile(variant.source, variant.variant->target->name, "cubin");
    });
  pool.wait();

  KernelFigures figures;
  for (auto [variant, plan, result] : zip(kernel.variants, kernel.plan.variants, results)) {
    figures.push_back(result.ok ? figuresOf(plan, result.log) : std::nullopt);
    if (!figures.back() && !diags.hasErrors()) // one log is enough to see what is wrong
      diags.internalError("generated text", "nvcc refuses " + variant.variant->name + ":\n" + result.log,
                          variant.variant->location);
  }
  return figures;
}

/// What a gate on resources is compared with; nothing for gates that need a GPU.
static std::optional<double> measured(const Gate &gate, const VariantFigures &figures) {
  if (gate.name == "registers")
    return figures.registers;
  if (gate.name == "spills")
    return double(figures.spillBytes);
  if (gate.name == "shared")
    return double(figures.sharedBytes);
  if (gate.name == "ctas")
    return figures.occupancy.ctasPerSm;
  return std::nullopt;
}

static bool checkVariant(const KernelSpec &spec, const Variant &variant, const VariantFigures &figures,
                         SharedMeter &meter, Diagnostics &diags) {
  bool passed = true;
  for (const Gate &gate : spec.gates) {
    std::optional<double> figure = measured(gate, figures);
    if (!figure || gateHolds(gate, *figure))
      continue;
    passed = false;
    diags.error(gate.location, fmt::format("{} on {} has {} {}, which fails '{}'", variant.name,
                                           variant.target->name.str(), gate.name, *figure, gate.text));
    diags.note(variant.schedule.locationOf("tile"),
               besideItsTile(nearestThatFits(variant, meter, limitsOf(gate, variant))));
  }
  return passed;
}

bool checkResources(const CompiledKernel &kernel, const KernelFigures &figures, SharedMeter &meter, Diagnostics &diags,
                    raw_ostream &os) {
  bool passed = true;
  for (auto [plan, figure] : zip(kernel.plan.variants, figures)) {
    if (!figure)
      continue;
    bool ok = checkVariant(*kernel.spec, *plan.variant, *figure, meter, diags);
    os << fmt::format("{:<44} {:<7} {:>3} registers {:>5} B spilled {:>7} B shared  {}\n", plan.variant->name,
                      plan.variant->target->name.str(), figure->registers, figure->spillBytes, figure->sharedBytes,
                      ok ? "ok" : "FAIL");
    passed &= ok;
  }
  return passed;
}

std::string failedResourceGate(const CompiledKernel &kernel, const KernelFigures &figures) {
  for (auto [plan, figure] : zip(kernel.plan.variants, figures))
    for (const Gate &gate : kernel.spec->gates)
      if (std::optional<double> value = figure ? measured(gate, *figure) : std::nullopt;
          value && !gateHolds(gate, *value))
        return fmt::format("{} {} on {}, which fails '{}'", gate.name, *value, plan.variant->target->name.str(),
                           gate.text);
  return "";
}

std::string emitResources(const CompiledKernel &kernel, const KernelFigures &figures) {
  json::Array rows;
  for (auto [plan, figure] : zip(kernel.plan.variants, figures)) {
    if (!figure)
      continue;
    const TargetInfo &target = *plan.variant->target;
    rows.push_back(
        json::Object{{"variant", plan.variant->name},
                     {"target", target.name},
                     {"registers", figure->registers},
                     {"spill_bytes", int64_t(figure->spillBytes)},
                     {"shared_bytes", int64_t(figure->sharedBytes)},
                     {"threads", figure->threads},
                     {"ctas_per_sm", figure->occupancy.ctasPerSm},
                     {"limit", figure->occupancy.limit},
                     {"occupancy", double(figure->occupancy.ctasPerSm * figure->threads / 32) / target.maxWarpsPerSm}});
  }
  return formatv("{0:2}\n", json::Value(std::move(rows))).str();
}

} // namespace fagen
