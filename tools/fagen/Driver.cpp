// fagen: the way of a command: read specs, check them, lower every variant, write everything or nothing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "Driver.h"

#include "MachineCode.h"
#include "Nvcc.h"
#include "Output.h"
#include "Resources.h"
#include "SingleOutput.h"
#include "TunedFile.h"
#include "fagen/Output/OutputFile.h"
#include "fagen/Spec/Analyze.h"
#include "fagen/Spec/Gates.h"
#include "fagen/Spec/PrintSpec.h"
#include "fagen/Support/StandardOutput.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"

namespace fagen {

Driver::Driver(DriverOptions given, const char *argv0, llvm::raw_ostream &errors)
    : options(std::move(given)), argv0(argv0), diags(sources, errors), runner(options.pipeline, llvm::outs()) {
  diags.setShowRemarks(options.showRemarks);
  diags.setFormat(options.diagnostics);
}

ExitCode Driver::run() {
  const ExitCode code = compile();
  diags.finish();
  return code;
}

ExitCode Driver::compile() {
  if (!checkOptions())
    return kUserMistake;

  // Every spec is read and checked before anything is proved or written, so that one run shows all mistakes of all of
  // them. The checks lower each variant as far as its shared memory is known.
  readSpecs();
  programs.read(options.programs, diags);
  if (!diags.hasErrors() && !options.tuned.empty())
    applyTimes();
  if (diags.hasErrors())
    return result();
  if (options.emit == EmitKind::Spec) {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (options.json)
      printSpecJson(files, os);
    for (const SpecFile &file : files)
      if (!options.json)
        printSpec(file, os);
    return writeText(text) ? kDone : kUserMistake;
  }

  if (options.checkResources || !options.cubins.empty() || options.emit == EmitKind::Cubin)
    if (Nvcc nvcc(options.nvcc, options.deviceInclude, argv0); nvcc.missing().empty())
      nvcc.warnOfOtherVersion(diags);

  // What is left now should not fail on any spec: from here on an error is a barrier policy that leaves a hazard open,
  // or a mistake of fagen's own.
  compileKernels();
  runner.printTimes();
  if (diags.hasErrors())
    return result();

  if (options.emit == EmitKind::Nothing) {
    checkGates();
    return diags.hasErrors() ? result() : kDone;
  }
  if (options.emit == EmitKind::Single)
    return writeSingle() ? kDone : result();
  if (options.emit != EmitKind::Files) {
    Nvcc nvcc(options.nvcc, options.deviceInclude, argv0);
    std::optional<std::string> text = emitText(kernels, options, nvcc, diags);
    return text && writeText(*text) ? kDone : result();
  }

  // Gates come before the first file is renamed into place: a kernel set that fails them never appears.
  checkGates();
  if (!diags.hasErrors())
    makeMachineCode();
  if (diags.hasErrors())
    return result();
  return writeKernels() ? kDone : kUserMistake;
}

ExitCode Driver::result() const {
  if (diags.hasInternalErrors())
    return kInternalError;
  return gatesPassed ? kUserMistake : kGateFailed;
}

bool Driver::checkOptions() {
  if (options.emit == EmitKind::Files && options.output.empty())
    diags.error(Location(), "-o says which directory to write to; --emit prints instead");
  if (options.emit == EmitKind::Files && options.output == "-")
    diags.error(Location(), "-o - is standard output, and a kernel set is files: name a directory, or add --emit");
  if (options.emit == EmitKind::Single && (options.output.empty() || options.output == "-"))
    diags.error(Location(), "--emit=single writes two files: -o attn makes them attn.h and attn.cu");
  if (options.emit == EmitKind::Files && !options.variants.empty())
    diags.error(Location(), "--variant goes with --emit: a kernel set is written whole");
  if (options.instrument != Instrument::None && !options.programs.empty())
    diags.error(Location(), "--instrument goes with attention's kernels; leave out the programs");
  if (!options.targets.empty() && !options.programs.empty())
    diags.error(Location(), "--target is of specs; a program says its own, and there are some on the command line");
  if (!options.set.empty() && options.programs.empty())
    diags.error(Location(), "--set says where programs stand; give some: files whose names end in .fair");
  if (!options.shapes.empty() && options.emit != EmitKind::Plan)
    diags.error(Location(), "--shape goes with --emit=plan");
  if (!options.cubins.empty() && options.emit != EmitKind::Files)
    diags.error(Location(), "--cubins goes with kernel sets; --emit=cubin prints the machine code of one variant");
  for (unsigned sm : options.cubins)
    if (llvm::none_of(allTargets(), [&](const TargetInfo &target) { return target.runsOn(sm); }))
      diags.error(Location(), "--cubins=" + llvm::Twine(sm) + ": no target's text runs there; 80, 86, 89 and 90 are " +
                                  "compute capabilities");
  if (!options.gpu.empty() && options.shapes.empty())
    diags.error(Location(), "--gpu goes with --shape");
  const bool needsPlan = options.emit != EmitKind::Plan || options.shapes.empty();
  if (!options.pipeline.stopAfter.empty() && options.emit != EmitKind::IR && options.emit != EmitKind::Spec &&
      needsPlan)
    diags.error(Location(), "--stop-after leaves kernels unfinished: it goes with --emit=ir, spec, or plan --shape");
  if (options.json && options.emit != EmitKind::Barriers && options.emit != EmitKind::Plan &&
      options.emit != EmitKind::Spec)
    diags.error(Location(), "--json goes with --emit=barriers, plan or spec");
  if (runner.checkNames(diags))
    checkRunPasses();
  return !diags.hasErrors();
}

/// Kernels of a spec have nothing yet that a pass in the middle could start from.
void Driver::checkRunPasses() {
  const std::vector<std::string> &passes = options.pipeline.runPasses;
  if (passes.empty())
    return;
  const PassEntry &first = pipelinePasses().front();
  const PassEntry &last =
      *llvm::find_if(pipelinePasses(), [](const PassEntry &pass) { return pass.leaves == ir::Phase::Verified; });
  if (passes.front() != first.name)
    diags.error(Location(), "--run-pass=" + passes.front() + ": kernels of a spec begin with " + first.name +
                                "; fagen-opt runs one pass on IR, as --emit=ir --stop-after prints it");
  else if (lookupPass(passes.back())->leaves != last.leaves && options.emit != EmitKind::IR &&
           options.emit != EmitKind::Spec)
    diags.error(Location(), "--run-pass leaves kernels unfinished unless " + last.name +
                                " is the last: it goes with --emit=ir, or spec");
}

void Driver::readSpecs() {
  for (const std::string &path : options.specs) {
    llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> buffer = llvm::MemoryBuffer::getFile(path);
    if (!buffer) {
      diags.error(Location(), "cannot read '" + path + "': " + buffer.getError().message());
      continue;
    }
    unsigned id = sources.AddNewSourceBuffer(std::move(*buffer), llvm::SMLoc());
    if (std::optional<SpecFile> file = analyzeSpec(sources, id, diags, {options.targets, &lowering})) {
      files.push_back(std::move(*file));
      texts.push_back(sources.getMemoryBuffer(id)->getBuffer());
    }
  }
  if (!diags.hasErrors())
    checkDistinct(files, diags);
}

/// Why the kernel's gates on resources refuse a variant; tuners run on other GPUs than its target too.
std::string Driver::resourceVeto(const Nvcc &nvcc, const KernelSpec &kernel, const Variant &variant) {
  KernelSpec alone = kernel;
  alone.variants = {variant};
  std::optional<CompiledKernel> compiled =
      compileKernel(alone, "tuned", options.pipeline, Instrument::None, lowering, runner, diags);
  return compiled ? failedResourceGate(*compiled, measureResources(*compiled, nvcc, diags)) : "";
}

/// Measured times replace values and thresholds of the specs.
void Driver::applyTimes() {
  std::optional<std::vector<TunedStudy>> studies = readTuned(options.tuned, diags);
  if (!studies)
    return;
  Nvcc nvcc(options.nvcc, options.deviceInclude, argv0);
  auto veto = [&](const KernelSpec &kernel, const Variant &variant) {
    return options.checkResources && nvcc.missing().empty() ? resourceVeto(nvcc, kernel, variant) : "";
  };
  bool any = false;
  for (auto [file, text] : llvm::zip(files, texts))
    for (KernelSpec &kernel : file.kernels) {
      warnOfOtherText(kernel, text, options.targets, *studies, diags);
      any |= applyTuned(kernel, *studies, lowering, diags, veto);
    }
  if (!any)
    diags.error(Location(), options.tuned + " has no times of a kernel of these specs");
}

llvm::StringRef Driver::pathOf(const CompiledKernel &kernel) const {
  for (const auto &[path, file] : llvm::zip(options.specs, files))
    for (const KernelSpec &each : file.kernels)
      if (&each == kernel.spec)
        return path;
  return kernel.specName;
}

void Driver::compileKernels() {
  for (const SpecFile &file : files)
    for (const KernelSpec &kernel : file.kernels)
      if (std::optional<CompiledKernel> compiled =
              compileKernel(kernel, file.baseName, options.pipeline, options.instrument, lowering, runner, diags))
        kernels.push_back(std::move(*compiled));
  if (!diags.hasErrors() && !programs.empty())
    if (CompiledKernel *const set = findSet())
      programs.compile(*set, options.pipeline, diags);
}

/// The kernel set that the programs stand in.
CompiledKernel *Driver::findSet() {
  const std::string &wanted = options.set;
  for (CompiledKernel &kernel : kernels)
    if (wanted.empty() ? kernels.size() == 1 : kernel.spec->name == wanted)
      return &kernel;
  if (wanted.empty() && !kernels.empty()) {
    diags.error(Location(), "programs stand in one kernel set, and the specs have " + llvm::Twine(kernels.size()) +
                                "; --set=" + kernels.front().spec->name +
                                " names one, or another name a set of its own");
    return nullptr;
  }
  std::optional<CompiledKernel> own = programs.ownSet(wanted, diags);
  if (!own)
    return nullptr;
  kernels.push_back(std::move(*own));
  return &kernels.back();
}

void Driver::checkGates() {
  Nvcc nvcc(options.nvcc, options.deviceInclude, argv0);
  outputs.resize(kernels.size());
  for (auto [kernel, files] : llvm::zip(kernels, outputs)) {
    if (!options.checkResources) {
      gatesPassed &= checkSharedGates(*kernel.spec, lowering, diags);
      continue;
    }
    if (!nvcc.missing().empty()) {
      llvm::outs() << kernel.spec->name << ": registers and spills not checked: " << nvcc.missing() << "\n";
      gatesPassed &= checkSharedGates(*kernel.spec, lowering, diags);
      continue;
    }
    KernelFigures figures = measureResources(kernel, nvcc, diags);
    gatesPassed &= checkResources(kernel, figures, lowering, diags, llvm::outs());
    llvm::SmallString<128> path(options.output);
    llvm::sys::path::append(path, kernel.spec->name, "resources.json");
    files.add(path.str().str(), emitResources(kernel, figures));
  }
}

void Driver::makeMachineCode() {
  if (options.cubins.empty())
    return;
  Nvcc nvcc(options.nvcc, options.deviceInclude, argv0);
  if (!nvcc.missing().empty())
    return diags.error(Location(), "--cubins: " + nvcc.missing());
  for (auto [kernel, files] : llvm::zip(kernels, outputs))
    addMachineCode(kernel, options.cubins, nvcc, options.output, files, diags);
}

bool Driver::writeKernels() {
  for (auto [kernel, files] : llvm::zip(kernels, outputs))
    addKernelFiles(kernel, options.output, files);
  std::string problem = commit(outputs, [&] {
    for (const CompiledKernel &kernel : kernels)
      llvm::outs() << kernel.spec->name << ": " << kernel.variants.size() << " variants in "
                   << llvm::StringRef(options.output).rtrim('/') << "/" << kernel.spec->name << "\n";
    return flushStandardOutput();
  });
  if (!problem.empty())
    diags.error(Location(), problem);
  return problem.empty();
}

bool Driver::writeSingle() {
  if (!checkVariants(kernels, options.variants, diags))
    return false;
  std::optional<OutputSet> files = singleOutput(kernels, options, diags);
  if (!files)
    return false;
  std::string problem = commit(*files, flushStandardOutput);
  if (!problem.empty())
    diags.error(Location(), problem);
  return problem.empty();
}

bool Driver::writeText(llvm::StringRef text) {
  if (options.output.empty() || options.output == "-") {
    llvm::outs() << text;
    return true;
  }
  std::string problem = flushStandardOutput();
  if (problem.empty())
    problem = writeOutput(options.output, text);
  if (!problem.empty())
    diags.error(Location(), problem);
  return problem.empty();
}

} // namespace fagen
