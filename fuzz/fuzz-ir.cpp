// fagen: fuzz target: any text through the IR parser; what it accepts through verifier, printer and the passes on IR.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//   cmake -B build/fuzz -DCMAKE_CXX_COMPILER=clang++ -DFAGEN_FUZZ=ON && ninja -C build/fuzz fuzz-ir
//   build/fuzz/bin/fuzz-ir -max_total_time=600 -timeout=20 CORPUS
//
// Each pass that needs no spec runs alone, in the phase that it needs, whatever phase the text names; of a kernel that
// is proved then the text is made, where this target has emission. Fails on a crash, on printed IR that reads back as
// another, and on an internal error of a pass.

#include "fagen/IR/Verifier.h"
#include "fagen/Passes/PipelineRunner.h"

#ifdef FAGEN_FUZZ_EMIT
#include "fagen/Emit/BuildPlan.h"
#include "fagen/Emit/Emittable.h"
#include "fagen/Emit/Manifest.h"
#include "fagen/Emit/ProgramPlan.h"
#endif

#include "llvm/Support/MemoryBuffer.h"

using namespace fagen;

namespace {

std::unique_ptr<ir::Program> read(llvm::StringRef text, Diagnostics &diags) {
  const unsigned buffer =
      diags.getSources().AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, "fuzz.fair"), llvm::SMLoc());
  return ir::parseProgram(buffer, diags);
}

std::string print(const ir::Program &program) {
  std::string text;
  llvm::raw_string_ostream os(text);
  ir::print(program, os);
  return text;
}

[[noreturn]] void fail(const llvm::Twine &what) {
  llvm::errs() << "fuzz-ir: " << what << "\n";
  abort();
}

bool isSound(const ir::Program &program) {
  return ir::verify(program, [](const Location &, const llvm::Twine &) {});
}

#ifdef FAGEN_FUZZ_EMIT
/// The text and the plan of a program that is proved, where it is one that has a text.
void emit(const ir::Program &program, Diagnostics &diags) {
  if (!checkEmittable(program, diags))
    return;
  KernelText text = emitProgram(program);
  if (std::optional<llvm::json::Object> plan = programPlan(program))
    emitProgramPlan(std::move(*plan), "fuzz.cu");
  else
    emitPlan(buildPlan(program, std::move(text)), program.name);
}
#else
void emit(const ir::Program &, Diagnostics &) {}
#endif

/// Runs the passes on the text's program, as fagen-opt would, if it is sound in the phase that the first of them needs.
void runPasses(const std::string &text, std::vector<std::string> passes) {
  llvm::SourceMgr sources;
  std::string messages;
  llvm::raw_string_ostream os(messages);
  Diagnostics diags(sources, os);
  std::unique_ptr<ir::Program> program = read(text, diags);
  for (std::unique_ptr<ir::Kernel> &kernel : program->kernels)
    kernel->phase = lookupPass(passes.front())->needs;
  if (!isSound(*program))
    return;
  PipelineOptions options;
  options.runPasses = std::move(passes);
  PassContext context{.diags = diags, .listing = &llvm::nulls()};
  PipelineRunner(options, llvm::nulls()).run(*program, context);
  if (diags.hasInternalErrors())
    fail(options.runPasses.back() + ": " + os.str());
  if (!diags.hasErrors() && program->kernels.front()->phase == ir::Phase::Verified)
    emit(*program, diags);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::SourceMgr sources;
  Diagnostics diags(sources, llvm::nulls());
  std::unique_ptr<ir::Program> program = read(llvm::StringRef(reinterpret_cast<const char *>(data), size), diags);
  if ((program == nullptr) != diags.hasErrors())
    fail("neither a program nor an error, or both");
  if (!program)
    return 0;
  const std::string text = print(*program);
  std::unique_ptr<ir::Program> again = read(text, diags);
  if (!again || print(*again) != text)
    fail("printed IR reads back as another:\n" + text);
  for (const PassEntry &pass : pipelinePasses())
    if (!pass.needsVariant)
      runPasses(text, {pass.name.str()});
  runPasses(text, {"print-hazards"});
  runPasses(text, {"allocate-shared", "place-barriers", "verify-barriers"});
  return 0;
}
