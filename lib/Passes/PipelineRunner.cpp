// fagen: runs passes: order, checkpoints, printing, timing, verification.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Passes/PipelineRunner.h"
#include "fagen/IR/LastPass.h"
#include "fagen/IR/Names.h"
#include "fagen/IR/Verifier.h"
#include "fagen/Passes/PassTable.h"
#include "fagen/Support/Suggest.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace fagen;
using llvm::StringRef;
using llvm::Twine;

PipelineOptions PipelineFlags::get() const {
  PipelineOptions options;
  options.runPasses.assign(runPasses.begin(), runPasses.end());
  options.printAfter.assign(printAfter.begin(), printAfter.end());
  options.printAfterAll = printAfterAll;
  options.stopAfter = stopAfter;
  options.verifyEach = verifyEach;
  options.timePasses = timePasses;
  return options;
}

PipelineRunner::PipelineRunner(const PipelineOptions &options, llvm::raw_ostream &os) : options(options), os(os) {}

static bool checkName(StringRef name, Diagnostics &diags) {
  if (lookupPass(name))
    return true;
  std::vector<StringRef> names;
  for (const PassInfo &pass : kPasses)
    names.push_back(pass.name);
  const StringRef nearest = nearestWord(name, names);
  diags.error(Location(),
              "unknown pass '" + name + "'; " +
                  (nearest.empty() ? "there are " + alternatives(names) : "did you mean '" + nearest.str() + "'?"));
  return false;
}

bool PipelineRunner::checkNames(Diagnostics &diags) const {
  bool known = true;
  for (StringRef name : options.runPasses)
    known &= checkName(name, diags);
  for (StringRef name : options.printAfter)
    known &= checkName(name, diags);
  return (options.stopAfter.empty() || checkName(options.stopAfter, diags)) && known;
}

PipelineResult PipelineRunner::run(ir::Program &program, PassContext &context, StringRef after) {
  context.program = &program;
  last = lookupPass(after);
  std::vector<const PassEntry *> passes;
  for (StringRef name : options.runPasses)
    passes.push_back(lookupPass(name));
  if (passes.empty())
    for (const PassEntry &pass : pipelinePasses())
      passes.push_back(&pass);

  for (const PassEntry *pass : passes) {
    const bool isLast = pass == passes.back() || pass->name == options.stopAfter;
    if (!runPass(*pass, program, context, isLast))
      return PipelineResult::Failed;
    if (pass->name == options.stopAfter)
      return PipelineResult::Stopped;
  }
  return PipelineResult::Finished;
}

StringRef PipelineRunner::reached() const {
  return last && !tellsPassesLeft(last->leaves) ? StringRef(last->name) : StringRef();
}

void PipelineRunner::advance(const PassEntry &pass, const PassContext &context) {
  const llvm::ArrayRef<PassEntry> passes = pipelinePasses();
  if (&pass < passes.begin() || &pass >= passes.end())
    return;
  const bool follows = context.runsAll || &pass == passes.begin() || (last && (last + 1 == &pass || last == &pass));
  last = follows && !context.diags.hasErrors() ? &pass : nullptr;
}

/// False at the checkpoint: there are errors.
bool PipelineRunner::runPass(const PassEntry &pass, ir::Program &program, PassContext &context, bool isLast) {
  bool changed = false;
  for (size_t i = 0; i != program.kernels.size(); ++i) { // a pass may add one
    changed |= runOnKernel(pass, *program.kernels[i], context);
    if (context.diags.hasErrors())
      break;
  }
  advance(pass, context);
  if (prints(pass, program)) // also what a failed pass left: that is when it is needed
    printAfter(pass, program, changed);
  if (context.diags.hasErrors())
    return false;
  const bool isBuilt = llvm::none_of(program.kernels, [](const auto &kernel) { return kernel->roles.empty(); });
  if (isBuilt && (options.verifyEach || isLast || !context.variant))
    verifyAfter(pass, program, context);
  return !context.diags.hasErrors();
}

/// Passes leave sound IR of kernels that they were made for, which those of specs are. IR from text may be of any kind.
void PipelineRunner::verifyAfter(const PassEntry &pass, const ir::Program &program, PassContext &context) {
  ir::verify(program, [&](const Location &location, const Twine &message) {
    if (context.variant)
      context.diags.internalError("IR after pass '" + pass.name + "'", message, location);
    else
      context.diags.error(location, "pass '" + pass.name + "' does not know such a kernel, and leaves it unsound: " +
                                        message + context.advice());
  });
}

/// Whether the pass changed the kernel.
bool PipelineRunner::runOnKernel(const PassEntry &pass, ir::Kernel &kernel, PassContext &context) {
  if (pass.needsVariant && !context.variant) {
    context.diags.error(kernel.location, "pass '" + pass.name + "' reads the spec, which IR from text does not have");
    return false;
  }
  if (kernel.phase < pass.needs) {
    context.diags.error(kernel.location, "pass '" + pass.name + "' needs phase " + toString(pass.needs) + "; kernel '" +
                                             kernel.symbol + "' is in phase " + toString(kernel.phase));
    return false;
  }
  const bool hasPassed = kernel.phase > pass.leaves && pass.leaves >= pass.needs;
  if (hasPassed) {
    context.diags.error(kernel.location, "pass '" + pass.name + "' leaves phase " + toString(pass.leaves) +
                                             "; kernel '" + kernel.symbol + "' is beyond it, in phase " +
                                             toString(kernel.phase));
    return false;
  }
  const bool changed = options.timePasses ? runTimed(pass, kernel, context) : pass.run(kernel, context);
  if (kernel.phase < pass.leaves && !context.diags.hasErrors())
    context.diags.internalError(
        "pass '" + pass.name + "'",
        "the kernel is left in phase " + toString(kernel.phase) + ", not " + toString(pass.leaves), kernel.location);
  return changed;
}

bool PipelineRunner::runTimed(const PassEntry &pass, ir::Kernel &kernel, PassContext &context) {
  const llvm::TimeRecord begin = llvm::TimeRecord::getCurrentTime(true);
  const bool changed = pass.run(kernel, context);
  llvm::TimeRecord elapsed = llvm::TimeRecord::getCurrentTime(false);
  elapsed -= begin;
  times[pass.name] += elapsed;
  return changed;
}

bool PipelineRunner::prints(const PassEntry &pass, const ir::Program &program) const {
  return (options.printAfterAll || llvm::is_contained(options.printAfter, pass.name)) &&
         (options.printOf.empty() || llvm::is_contained(options.printOf, program.name));
}

/// Headed by a comment, so that what is printed once can be read back.
void PipelineRunner::printAfter(const PassEntry &pass, const ir::Program &program, bool changed) {
  os << "// " << program.name << " after " << pass.name << (changed ? "\n" : " (unchanged)\n");
  if (changed)
    ir::print(program, reached(), os);
}

void PipelineRunner::printTimes() {
  if (!options.timePasses)
    return;
  double total = 0;
  for (const auto &entry : times)
    total += entry.second.getWallTime();
  os << "// seconds  share  pass\n";
  for (const PassInfo &pass : kPasses)
    if (auto it = times.find(pass.name); it != times.end()) {
      const double seconds = it->second.getWallTime();
      os << llvm::format("// %7.4f  %4.1f%%  ", seconds, total > 0 ? 100 * seconds / total : 0) << pass.name << "\n";
    }
  os << llvm::format("// %7.4f  total\n", total);
}
