// fagen: tests of the pipeline's table and of what its runner does.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "../Analysis/TestKernels.h"

#include "fagen/IR/LastPass.h"
#include "fagen/Passes/PassTable.h"
#include "fagen/Passes/PipelineRunner.h"

#include "gtest/gtest.h"

using namespace fagen;
using namespace fagen::test;

namespace {

/// One kernel through a runner; keeps what it printed.
struct KernelRun {
  KernelRun(const Shape &shape, PipelineOptions given) : options(std::move(given)), lowering(shape) {
    program.name = shape.name;
    program.kernels.push_back(std::make_unique<ir::Kernel>());
    PassContext context = lowering.context();
    context.listing = &llvm::nulls();
    result = runner.run(program, context);
  }

  PipelineOptions options;
  Lowering lowering;
  ir::Program program;
  std::string text;
  llvm::raw_string_ostream os{text};
  PipelineRunner runner{options, os};
  PipelineResult result = PipelineResult::Failed;
};

size_t occurrences(llvm::StringRef text, llvm::StringRef word) { return text.count(word); }

TEST(Pipeline, EachPassBeginsInThePhaseThatTheOneBeforeLeaves) {
  ir::Phase phase = ir::Phase::Built;
  for (const PassEntry &pass : pipelinePasses()) {
    EXPECT_EQ(pass.needs, phase) << pass.name.str();
    phase = pass.leaves;
  }
  EXPECT_EQ(phase, ir::Phase::Verified);
}

TEST(Pipeline, EveryPassHasAName) {
  for (const PassInfo &pass : kPasses) {
    const PassEntry *const entry = lookupPass(pass.name);
    ASSERT_NE(entry, nullptr) << pass.name.str();
    const auto pipeline = pipelinePasses();
    EXPECT_EQ(entry >= pipeline.begin() && entry < pipeline.end(), pass.inPipeline) << pass.name.str();
  }
}

/// What the runner printed after single passes, without the line that says which.
std::vector<std::string> dumps(llvm::StringRef text) {
  std::vector<std::string> result;
  for (llvm::StringRef rest = text.split("// ").second; !rest.empty(); rest = rest.split("// ").second)
    result.push_back(rest.split("// ").first.split('\n').second.str());
  return result;
}

/// What is printed of the program of a text, or why it has none.
std::string printedAgain(llvm::StringRef text) {
  llvm::SourceMgr sources;
  std::string result;
  llvm::raw_string_ostream os(result);
  Diagnostics diags(sources, os);
  ir::LastPass last;
  const unsigned buffer = sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text), llvm::SMLoc());
  if (const std::unique_ptr<ir::Program> program = ir::parseProgram(buffer, diags, last))
    ir::print(*program, last.name, os);
  return result;
}

TEST(Pipeline, KeepsIRSoundAndPrintableBehindEachPassForEveryShape) {
  for (const Shape &shape : shapes()) {
    PipelineOptions options;
    options.verifyEach = true;
    options.printAfterAll = true;
    KernelRun run(shape, options);
    SCOPED_TRACE(shape.name + run.lowering.messages);
    ASSERT_EQ(run.result, PipelineResult::Finished);
    EXPECT_EQ(run.program.kernels.front()->phase, ir::Phase::Verified);
    const std::vector<std::string> texts = dumps(run.text);
    ASSERT_EQ(texts.size(), pipelinePasses().size());
    for (const std::string &text : texts) {
      if (llvm::StringRef(text).trim().empty())
        continue; // the pass changed nothing
      ASSERT_EQ(printedAgain(text), text);
    }
  }
}

TEST(Pipeline, StopsBehindAPass) {
  PipelineOptions options;
  options.stopAfter = "pipeline-loads";
  KernelRun run(shapes().front(), options);
  EXPECT_EQ(run.result, PipelineResult::Stopped);
  EXPECT_EQ(run.program.kernels.front()->phase, ir::Phase::Pipelined);
}

TEST(Pipeline, PrintsBehindNamedPasses) {
  PipelineOptions options;
  options.printAfter = {"build-tiles", "verify-barriers"};
  KernelRun run(shapes().front(), options);
  EXPECT_EQ(occurrences(run.text, "// prefill after "), 2u);
  EXPECT_EQ(occurrences(run.text, "// prefill after build-tiles\nprogram @prefill after \"build-tiles\" {"), 1u);
}

TEST(Pipeline, SaysUnchangedInsteadOfPrinting) {
  PipelineOptions options;
  options.runPasses = {"resolve-options", "build-tiles",    "split-mask-loops",
                       "pipeline-loads",  "assign-layouts", "print-hazards"};
  options.printAfter = {"print-hazards"};
  KernelRun run(shapes().front(), options);
  EXPECT_EQ(run.result, PipelineResult::Finished) << run.lowering.messages;
  EXPECT_EQ(run.text, "// prefill after print-hazards (unchanged)\n");
}

TEST(Pipeline, FailsWhereAPassNeedsALaterPhase) {
  PipelineOptions options;
  options.runPasses = {"resolve-options", "build-tiles", "allocate-shared"};
  KernelRun run(shapes().front(), options);
  EXPECT_EQ(run.result, PipelineResult::Failed);
  EXPECT_NE(run.lowering.messages.find("pass 'allocate-shared' needs phase laid_out"), std::string::npos)
      << run.lowering.messages;
}

TEST(Pipeline, StopsAtTheCheckpointAfterAnError) {
  PipelineOptions options;
  options.runPasses = {"resolve-options", "allocate-shared", "build-tiles"};
  options.printAfterAll = true;
  KernelRun run(shapes().front(), options);
  EXPECT_EQ(run.result, PipelineResult::Failed);
  EXPECT_EQ(occurrences(run.text, "after build-tiles"), 0u);
}

TEST(Pipeline, RefusesUnknownNames) {
  llvm::SourceMgr sources;
  std::string messages;
  llvm::raw_string_ostream os(messages);
  Diagnostics diags(sources, os);
  PipelineOptions options;
  options.runPasses = {"place-bariers"};
  options.stopAfter = "nothing";
  EXPECT_FALSE(PipelineRunner(options, os).checkNames(diags));
  EXPECT_NE(messages.find("unknown pass 'place-bariers'; did you mean 'place-barriers'?"), std::string::npos);
  EXPECT_NE(messages.find("unknown pass 'nothing'; there are resolve-options, "), std::string::npos);
}

TEST(Pipeline, TimesEveryPass) {
  PipelineOptions options;
  options.timePasses = true;
  KernelRun run(shapes().front(), options);
  run.runner.printTimes();
  for (const PassEntry &pass : pipelinePasses())
    EXPECT_EQ(occurrences(run.text, pass.name), 1u) << pass.name.str();
  EXPECT_EQ(occurrences(run.text, "total"), 1u);
}

} // namespace
