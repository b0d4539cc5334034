// fagen: what the driver writes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Output.h"

#include "BarrierTable.h"
#include "ModelTable.h"
#include "Mutants.h"
#include "fagen/Analysis/Order.h"
#include "fagen/Emit/BuildPlan.h"
#include "fagen/Emit/CMakeFile.h"
#include "fagen/Emit/Manifest.h"
#include "fagen/Emit/Table.h"
#include "fagen/IR/LastPass.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace fagen {

//===-- Kernel sets
//------------------------------------------------------------------------------------------------===//

void addKernelFiles(CompiledKernel &kernel, StringRef directory, OutputSet &files) {
  auto place = [&](StringRef name) {
    SmallString<128> path(directory);
    sys::path::append(path, kernel.spec->name, name);
    return path.str().str();
  };
  for (auto [variant, plan] : zip(kernel.variants, kernel.plan.variants))
    files.add(place(plan.sourcePath), std::move(variant.source));
  files.add(place("table.h"), emitTableHeader(kernel.plan));
  files.add(place("table.cpp"), emitTable(kernel.plan));
  files.add(place("CMakeLists.txt"), emitCMakeFile(kernel.plan));
  // Anything but a file is refused later; a FIFO or a device is not even read.
  const bool exists = sys::fs::is_regular_file(place("manifest.json"));
  const std::string older = exists ? readFile(place("manifest.json")).value_or("") : "";
  std::string manifest = emitManifest(kernel.plan);
  const bool isSame = older == manifest; // then there is nothing to remove; mostly it is so
  files.setManifest(place("manifest.json"), std::move(manifest),
                    emitUnfinishedManifest(kernel.plan, isSame ? "" : older)); // both list the same files then
  if (isSame)
    return;
  std::vector<std::string> made = filesOf(kernel.plan);
  for (const std::string &name : filesOfManifest(older))
    if (!is_contained(made, name) && sys::fs::is_regular_file(place(name)))
      files.remove(place(name));
}

//===-- --emit
//-----------------------------------------------------------------------------------------------------===//

namespace {

/// A variant that --variant leaves, with its kernel.
struct Chosen {
  const CompiledKernel *kernel;
  const CompiledVariant *variant;
};

} // namespace

/// Reports every name of --variant that no variant has.
static std::vector<Chosen> chooseVariants(ArrayRef<CompiledKernel> kernels, ArrayRef<std::string> names,
                                          Diagnostics &diags) {
  std::vector<Chosen> chosen;
  std::vector<StringRef> known;
  for (const CompiledKernel &kernel : kernels) {
    for (const CompiledVariant &variant : kernel.variants) {
      known.push_back(variant.variant->name);
      if (names.empty() || is_contained(names, variant.variant->name))
        chosen.push_back({&kernel, &variant});
    }
  }
  for (const std::string &name : names) {
    if (is_contained(known, name))
      continue;
    StringRef near = nearestWord(name, known);
    diags.error(Location(), "no variant '" + name + "'" +
                                (near.empty() ? "; --emit=plan lists all" : "; did you mean '" + near.str() + "'?"));
  }
  return chosen;
}

bool checkVariants(ArrayRef<CompiledKernel> kernels, ArrayRef<std::string> names, Diagnostics &diags) {
  chooseVariants(kernels, names, diags);
  return !diags.hasErrors();
}

static std::string plansOf(ArrayRef<Chosen> chosen) {
  std::string text;
  raw_string_ostream os(text);
  for (size_t i = 0; i != chosen.size();) {
    const CompiledKernel *kernel = chosen[i].kernel;
    KernelPlan plan = kernel->plan;
    erase_if(plan.variants, [&](const VariantPlan &variant) {
      return none_of(chosen, [&](const Chosen &other) { return other.variant->variant == variant.variant; });
    });
    printPlan(plan, os);
    while (i != chosen.size() && chosen[i].kernel == kernel)
      ++i;
  }
  return text;
}

/// The rows of the chosen variants, as their manifests have them.
static std::string rowsOf(ArrayRef<PlannedVariant> variants) {
  std::string text = "[";
  for (const PlannedVariant &planned : variants)
    text += (text.size() == 1 ? "\n" : ",\n") + planned.plan->row;
  return text + "\n]\n";
}

static std::vector<PlannedVariant> plannedOf(ArrayRef<Chosen> chosen) {
  std::vector<PlannedVariant> sources;
  for (const Chosen &one : chosen) {
    const CompiledKernel &kernel = *one.kernel;
    const size_t index = one.variant - kernel.variants.data();
    if (index < kernel.plan.variants.size()) // the passes were not stopped
      sources.push_back({one.variant, &kernel.plan.variants[index]});
  }
  return sources;
}

static std::optional<std::string> modelsOf(ArrayRef<Chosen> chosen, const DriverOptions &options, Diagnostics &diags) {
  std::vector<model::Shape> shapes;
  for (const std::string &text : options.shapes)
    if (std::optional<model::Shape> shape = model::parseShape(text))
      shapes.push_back(*shape);
    else
      diags.error(Location(),
                  "--shape takes b,h,hkv,sq,sk,d, numbers from 1 on, h a multiple of hkv; not '" + text + "'");
  const GpuRates *gpu = options.gpu.empty() ? nullptr : findGpu(options.gpu);
  if (!options.gpu.empty() && !gpu) {
    std::vector<std::string> known;
    for (const GpuRates &rates : kGpuRates)
      known.push_back(rates.name);
    diags.error(Location(),
                "the model knows no GPU for --gpu=" + options.gpu + "; it takes sm_NN, " + join(known, ", "));
  }
  if (diags.hasErrors())
    return std::nullopt;
  std::vector<const CompiledVariant *> variants; // also where the passes were stopped
  for (const Chosen &one : chosen)
    if (!one.kernel->isProgram(*one.variant)) // of which the model knows no shape
      variants.push_back(one.variant);
  return emitModel(variants, shapes, gpu, options.json);
}

/// Only of kernels that the analysis of paths can judge.
static std::optional<std::string> mutantsOf(ArrayRef<Chosen> chosen, Diagnostics &diags) {
  std::vector<const Variant *> others;
  for (const Chosen &one : chosen)
    if (any_of(one.variant->program->kernels, [](const auto &kernel) { return needsOrder(*kernel); }))
      others.push_back(one.variant->variant);
  if (others.empty())
    return emitMutants(plannedOf(chosen));
  const std::string more = others.size() == 1 ? "" : " and " + std::to_string(others.size() - 1) + " more";
  diags.error(others.front()->location,
              "--emit=mutants is for kernels of one role, unlike " + others.front()->name + more +
                  "; choose others with --variant; scripts/role-mutants changes kernels of several roles");
  return std::nullopt;
}

/// PTX or machine code of the chosen variants, one after the other.
static std::optional<std::string> compiledText(ArrayRef<Chosen> chosen, StringRef kind, const Nvcc &nvcc,
                                               Diagnostics &diags) {
  if (!nvcc.missing().empty()) {
    diags.error(Location(), "--emit=" + kind + " needs nvcc: " + nvcc.missing());
    return std::nullopt;
  }
  if (kind == "cubin" && chosen.size() != 1) {
    diags.error(Location(), "--emit=cubin takes one variant on one target, not " + Twine(chosen.size()) +
                                "; choose it with --variant and --target");
    return std::nullopt;
  }
  std::string text;
  for (const Chosen &one : chosen) {
    Nvcc::Result result = nvcc.compile(one.variant->source, one.variant->variant->target->name, kind);
    if (!result.ok && !diags.hasErrors())
      diags.internalError("generated text", "nvcc refuses " + one.variant->variant->name + ":\n" + result.log,
                          one.variant->variant->location);
    text += result.output;
  }
  return diags.hasErrors() ? std::nullopt : std::optional(text);
}

std::optional<std::string> emitText(ArrayRef<CompiledKernel> kernels, const DriverOptions &options, const Nvcc &nvcc,
                                    Diagnostics &diags) {
  std::vector<Chosen> chosen = chooseVariants(kernels, options.variants, diags);
  if (diags.hasErrors())
    return std::nullopt;
  std::string text;
  raw_string_ostream os(text);
  switch (options.emit) {
  case EmitKind::Plan:
    if (!options.shapes.empty())
      return modelsOf(chosen, options, diags);
    return options.json ? rowsOf(plannedOf(chosen)) : plansOf(chosen);
  case EmitKind::IR:
    for (const Chosen &one : chosen)
      ir::print(*one.variant->program, one.variant->lastPass, os);
    return text;
  case EmitKind::Cuda:
    for (const Chosen &one : chosen)
      os << one.variant->source;
    return text;
  case EmitKind::Ptx:
    return compiledText(chosen, "ptx", nvcc, diags);
  case EmitKind::Cubin:
    return compiledText(chosen, "cubin", nvcc, diags);
  case EmitKind::Table:
    for (const CompiledKernel &kernel : kernels)
      os << emitTable(kernel.plan);
    return text;
  case EmitKind::Mutants:
    return mutantsOf(chosen, diags);
  case EmitKind::Barriers:
    return emitBarriers(plannedOf(chosen), options.json);
  case EmitKind::Files:
  case EmitKind::Single:
  case EmitKind::Spec:
  case EmitKind::Nothing:
    break; // not for this function
  }
  return text;
}

} // namespace fagen
