// fagen: what --emit=single writes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "SingleOutput.h"

#include "fagen/Emit/Single.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace fagen {

static bool isIdentifier(StringRef name) {
  return !name.empty() && !isDigit(name[0]) && all_of(name, [](char c) { return isAlnum(c) || c == '_'; });
}

/// The one kernel; null after a reported mistake.
static const CompiledKernel *theKernel(ArrayRef<CompiledKernel> kernels, const DriverOptions &options, StringRef name,
                                       Diagnostics &diags) {
  if (!isIdentifier(name))
    diags.error(Location(), "--emit=single writes -o's name with .h and .cu, and begins the names in them with it: '" +
                                name + "' is not an identifier of C; give one, as in -o attn");
  if (kernels.size() != 1)
    diags.error(Location(), "--emit=single takes one kernel, and the specs have " + Twine(kernels.size()) +
                                "; give each a file of its own");
  for (const CompiledKernel &kernel : kernels)
    if (!kernel.programs.empty() && kernel.variants.size() != 1)
      diags.error(Location(), "--emit=single writes a spec's kernel or one program, and there are " +
                                  Twine(kernel.variants.size()) + " variants and programs; give each files of its own");
  if (options.instrument != Instrument::None)
    diags.error(Location(),
                "--instrument goes with kernel sets, whose records fagen-run reads, not with --emit=single");
  return diags.hasErrors() ? nullptr : &kernels.front();
}

static std::string unfinished(StringRef name) {
  return ("#error \"fagen was interrupted while it wrote " + name + ".h and " + name + ".cu; run it again\"\n").str();
}

static OutputSet filesOf(const std::string &path, StringRef name, SingleFiles files) {
  OutputSet set;
  set.add(path + ".cu", std::move(files.source));
  set.setManifest(path + ".h", std::move(files.header), unfinished(name));
  return set;
}

std::optional<OutputSet> singleOutput(ArrayRef<CompiledKernel> kernels, const DriverOptions &options,
                                      Diagnostics &diags) {
  const StringRef name = sys::path::filename(options.output);
  const CompiledKernel *const kernel = theKernel(kernels, options, name, diags);
  if (!kernel)
    return std::nullopt;
  if (!kernel->programs.empty())
    return filesOf(
        options.output, name,
        emitSingleProgram(kernel->plan, *kernel->variants.front().program, kernel->variants.front().source, name));
  KernelPlan plan{kernel->plan.kernel, kernel->plan.specName, {}};
  std::vector<StringRef> sources;
  for (const auto &[compiled, planned] : zip(kernel->variants, kernel->plan.variants)) {
    const bool isChosen = options.variants.empty() ? compiled.variant->dispatched
                                                   : is_contained(options.variants, compiled.variant->name);
    if (!isChosen)
      continue;
    plan.variants.push_back(planned);
    sources.push_back(compiled.source);
  }
  return filesOf(options.output, name, emitSingle(plan, sources, name));
}

} // namespace fagen
