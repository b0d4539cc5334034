// fagen: fagen-opt: textual IR in, chosen passes, textual IR out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   fagen-opt kernel.fair --run-pass=allocate-shared --run-pass=place-barriers
//
// Without --run-pass the IR is read, verified and printed; with --emit=cuda the text of the kernels is, with
// --emit=plan what they take and how they are launched. Exit codes: 0 ok, 1 bad input, 70 a mistake of fagen's own.

#include "fagen/Emit/BuildPlan.h"
#include "fagen/Emit/Emittable.h"
#include "fagen/Emit/Manifest.h"
#include "fagen/Emit/ProgramPlan.h"
#include "fagen/IR/LastPass.h"
#include "fagen/IR/Rename.h"
#include "fagen/IR/Verifier.h"
#include "fagen/Lower/TextualIr.h"
#include "fagen/Output/OutputFile.h"
#include "fagen/Passes/PipelineRunner.h"
#include "fagen/Support/CrashHandler.h"
#include "fagen/Support/Diagnostics.h"
#include "fagen/Support/StandardOutput.h"

#include "llvm/ADT/STLExtras.h"

using namespace fagen;
using llvm::StringRef;
using llvm::Twine;

namespace {

enum ExitCode : int { kOk = 0, kBadInput = 1, kInternalError = 70 };

ExitCode exitCode(const Diagnostics &diags) {
  return diags.hasInternalErrors() ? kInternalError : diags.hasErrors() ? kBadInput : kOk;
}

/// Analyses only list what they find; with nothing else run, the unchanged IR would be noise.
bool printsProgram(const PipelineOptions &options) {
  return options.runPasses.empty() || llvm::any_of(pipelinePasses(), [&](const PassEntry &pass) {
           return llvm::is_contained(options.runPasses, pass.name);
         });
}

enum class Emit { Ir, Cuda, Plan };

/// What to do next to running passes.
struct Wanted {
  bool verifyOnly = false; ///< print nothing
  bool renameAll = false;  ///< before passes run, and again before printing
  bool bare = false;       ///< print what kernels do, and no more
  bool lower = false;      ///< run the passes that are left, to the proof
  Emit emit = Emit::Ir;
  bool hasClocks = false; ///< of a program's text: warps leave the clocks of their stages
};

void print(const ir::Program &program, StringRef lastPass, bool bare, llvm::raw_ostream &os) {
  if (!bare)
    return ir::print(program, lastPass, os);
  for (const std::unique_ptr<ir::Kernel> &kernel : program.kernels)
    ir::printBare(*kernel, os);
}

/// What a text calls proved is proved before it has a text of its own; what makes it slow alone is not asked.
bool prove(TextualProgram &text, Diagnostics &diags, llvm::raw_ostream &os) {
  PipelineOptions options;
  for (const std::string &name : passesLeft(text))
    if (StringRef(name).starts_with("verify-") && lookupPass(name)->needs < ir::Phase::Verified)
      options.runPasses.push_back(name);
  PassContext context{.diags = diags, .listing = &os, .runsAll = true};
  return PipelineRunner(options, os).run(*text.program, context, text.after) != PipelineResult::Failed;
}

/// Of a program that checkEmittable accepts.
ExitCode emitText(const ir::Program &program, const Wanted &wanted, Diagnostics &diags, llvm::raw_ostream &os) {
  if (wanted.hasClocks && !takesOwnArgument(program)) {
    diags.error(Location(), "--clocks goes with programs; fagen --instrument writes attention's kernels with clocks");
    return exitCode(diags);
  }
  if (std::optional<llvm::json::Object> plan = programPlan(program, wanted.hasClocks);
      plan && wanted.emit == Emit::Plan) {
    os << emitProgramPlan(std::move(*plan), program.name + ".cu");
    return exitCode(diags);
  }
  KernelText text = emitProgram(program, wanted.hasClocks ? Instrument::Every : Instrument::None);
  if (wanted.emit == Emit::Cuda)
    os << text.source;
  else
    os << emitPlan(buildPlan(program, std::move(text)), program.name);
  return exitCode(diags);
}

ExitCode run(StringRef input, const Wanted &wanted, PipelineOptions options, llvm::raw_ostream &os) {
  llvm::SourceMgr sources;
  Diagnostics diags(sources, llvm::errs());
  PipelineRunner runner(options, os);
  if (!runner.checkNames(diags))
    return exitCode(diags);
  TextualProgram text = readProgram(input, diags);
  ir::Program *const program = text.program.get();
  if (!program || wanted.verifyOnly)
    return exitCode(diags);
  if (wanted.renameAll)
    ir::renameAll(*program);
  if (wanted.lower)
    options.runPasses = passesLeft(text);

  if (!options.runPasses.empty()) {
    PassContext context{.diags = diags, .listing = &os, .runsAll = wanted.lower};
    const PipelineResult result = runner.run(*program, context, text.after);
    text.after = runner.reached().str();
    runner.printTimes();
    if (result == PipelineResult::Failed)
      return exitCode(diags);
  }
  if (wanted.renameAll)
    ir::renameAll(*program);
  if (wanted.emit != Emit::Ir) {
    if (!checkEmittable(*program, diags) || (!wanted.lower && !prove(text, diags, os)))
      return exitCode(diags);
    return emitText(*program, wanted, diags, os);
  }
  if (printsProgram(options))
    print(*program, text.after, wanted.bare, os);
  return exitCode(diags);
}

} // namespace

int main(int argc, char **argv) {
  reportCrashes("fagen-opt");
  checkStandardOutputAtExit("fagen-opt");
  PipelineFlags flags;
  llvm::cl::opt<std::string> input(llvm::cl::Positional, llvm::cl::desc("<file.fair>"), llvm::cl::init("-"));
  llvm::cl::opt<std::string> output("o", llvm::cl::value_desc("file"), llvm::cl::desc("output; - is stdout"),
                                    llvm::cl::init("-"));
  Wanted wanted;
  llvm::cl::opt<bool, true> verifyOnly("verify-only", llvm::cl::desc("read and verify the IR, and do nothing else"),
                                       llvm::cl::location(wanted.verifyOnly));
  llvm::cl::opt<bool, true> renameAll(
      "rename-all", llvm::cl::desc("name buffers, lets, roles and loops by number, before passes and again after them"),
      llvm::cl::location(wanted.renameAll));
  llvm::cl::opt<bool, true> lower("lower", llvm::cl::desc("run the passes of the pipeline that are left"),
                                  llvm::cl::location(wanted.lower));
  llvm::cl::opt<bool, true> bare(
      "bare", llvm::cl::desc("print what kernels do: no symbols, phases, ledgers, notes and places in files"),
      llvm::cl::location(wanted.bare));
  llvm::cl::opt<Emit, true> emit("emit", llvm::cl::desc("what to print"), llvm::cl::location(wanted.emit),
                                 llvm::cl::values(clEnumValN(Emit::Ir, "ir", "textual IR"),
                                                  clEnumValN(Emit::Cuda, "cuda", "the CUDA text of proved kernels"),
                                                  clEnumValN(Emit::Plan, "plan", "their launches and memory: JSON")));
  llvm::cl::opt<bool, true> clocks(
      "clocks", llvm::cl::desc("with --emit: warps of a program's kernels leave the clocks of their stages"),
      llvm::cl::location(wanted.hasClocks));
  llvm::cl::ParseCommandLineOptions(argc, argv, "fagen-opt: passes over textual IR\n");

  if (output == "-")
    return run(input, wanted, flags.get(), llvm::outs());
  std::string text;
  llvm::raw_string_ostream os(text);
  const ExitCode code = run(input, wanted, flags.get(), os);
  if (code != kOk)
    return code;
  if (std::string problem = writeOutput(output, text); !problem.empty()) {
    llvm::errs() << "fagen-opt: error: " << problem << "\n";
    return kBadInput;
  }
  return kOk;
}
