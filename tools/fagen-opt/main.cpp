// fagen: fagen-opt: textual IR in, chosen passes, textual IR out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   fagen-opt kernel.fair --run-pass=allocate-shared --run-pass=place-barriers
//
// Without --run-pass the IR is read, verified and printed. Exit codes: 0 ok, 1 bad input, 70 a mistake of fagen's own.

#include "fagen/IR/IR.h"
#include "fagen/IR/Verifier.h"
#include "fagen/Output/OutputFile.h"
#include "fagen/Passes/Pipeline.h"
#include "fagen/Support/Diagnostics.h"
#include "fagen/Support/StandardOutput.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace fagen;
using llvm::StringRef;
using llvm::Twine;

namespace {

enum ExitCode : int { kOk = 0, kBadInput = 1, kInternalError = 70 };

ExitCode exitCode(const Diagnostics &diags) {
  return diags.hasInternalErrors() ? kInternalError : diags.hasErrors() ? kBadInput : kOk;
}

/// The verified program of the file, or null after an error.
std::unique_ptr<ir::Program> readProgram(StringRef path, Diagnostics &diags) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> file = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!file) {
    diags.error(Location(), "cannot read '" + path + "': " + file.getError().message());
    return nullptr;
  }
  const unsigned buffer = diags.getSources().AddNewSourceBuffer(std::move(*file), llvm::SMLoc());
  std::unique_ptr<ir::Program> program = ir::parseProgram(buffer, diags);
  if (!program)
    return nullptr;
  const bool sound =
      ir::verify(*program, [&](const Location &location, const Twine &message) { diags.error(location, message); });
  return sound ? std::move(program) : nullptr;
}

/// Analyses only list what they find; with nothing else run, the unchanged IR would be noise.
bool printsProgram(const PipelineOptions &options) {
  return options.runPasses.empty() || llvm::any_of(pipelinePasses(), [&](const PassEntry &pass) {
           return llvm::is_contained(options.runPasses, pass.name);
         });
}

ExitCode run(StringRef input, bool verifyOnly, const PipelineOptions &options, llvm::raw_ostream &os) {
  llvm::SourceMgr sources;
  Diagnostics diags(sources, llvm::errs());
  PipelineRunner runner(options, os);
  if (!runner.checkNames(diags))
    return exitCode(diags);
  std::unique_ptr<ir::Program> program = readProgram(input, diags);
  if (!program || verifyOnly)
    return exitCode(diags);

  if (!options.runPasses.empty()) {
    PassContext context{.diags = diags, .listing = &os};
    const PipelineResult result = runner.run(*program, context);
    runner.printTimes();
    if (result == PipelineResult::Failed)
      return exitCode(diags);
  }
  if (printsProgram(options))
    ir::print(*program, os);
  return exitCode(diags);
}

} // namespace

int main(int argc, char **argv) {
  checkStandardOutputAtExit("fagen-opt");
  llvm::InitLLVM init(argc, argv, /*InstallPipeSignalExitHandler=*/false);
  PipelineFlags flags;
  llvm::cl::opt<std::string> input(llvm::cl::Positional, llvm::cl::desc("<file.fair>"), llvm::cl::init("-"));
  llvm::cl::opt<std::string> output("o", llvm::cl::value_desc("file"), llvm::cl::desc("output; - is stdout"),
                                    llvm::cl::init("-"));
  llvm::cl::opt<bool> verifyOnly("verify-only", llvm::cl::desc("read and verify the IR, and do nothing else"));
  llvm::cl::ParseCommandLineOptions(argc, argv, "fagen-opt: passes over textual IR\n");

  if (output == "-")
    return run(input, verifyOnly, flags.get(), llvm::outs());
  std::string text;
  llvm::raw_string_ostream os(text);
  const ExitCode code = run(input, verifyOnly, flags.get(), os);
  if (code != kOk)
    return code;
  if (std::string problem = writeOutput(output, text); !problem.empty()) {
    llvm::errs() << "fagen-opt: error: " << problem << "\n";
    return kBadInput;
  }
  return kOk;
}
