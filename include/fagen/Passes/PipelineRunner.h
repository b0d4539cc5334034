// fagen: what runs passes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Passes/Pipeline.h"
#include "fagen/Passes/PipelineOptions.h"

#include "llvm/Support/Timer.h"

namespace fagen {

enum class PipelineResult : uint8_t { Finished, Stopped, Failed };

/// Runs passes over programs. It alone prints, times and verifies; passes do none of that.
class PipelineRunner {
public:
  /// Writes what the options ask for to `os`.
  PipelineRunner(const PipelineOptions &options, llvm::raw_ostream &os);
  /// Reports pass names of the options that nobody has; false if there is one.
  bool checkNames(Diagnostics &diags) const;
  /// Every pass over each kernel of the program, or the passes of --run-pass. Stops after the first pass after which
  /// there are errors (Failed), and after that of --stop-after (Stopped). `after` is what reached() gave of the program
  /// before.
  PipelineResult run(ir::Program &program, PassContext &context, llvm::StringRef after = {});
  /// The pass of the pipeline that was the last one. Empty where the phase tells, and where passes were picked of which
  /// one did not follow the one before.
  llvm::StringRef reached() const;
  /// The table of --time-passes over all programs so far; nothing without that option.
  void printTimes();

private:
  bool runPass(const PassEntry &pass, ir::Program &program, PassContext &context, bool isLast);
  void advance(const PassEntry &pass, const PassContext &context);
  bool runOnKernel(const PassEntry &pass, ir::Kernel &kernel, PassContext &context);
  bool runTimed(const PassEntry &pass, ir::Kernel &kernel, PassContext &context);
  void verifyAfter(const PassEntry &pass, const ir::Program &program, PassContext &context);
  void printAfter(const PassEntry &pass, const ir::Program &program, bool changed);
  bool prints(const PassEntry &pass, const ir::Program &program) const;

  const PipelineOptions &options;
  llvm::raw_ostream &os;
  const PassEntry *last = nullptr; ///< as reached() says
  llvm::StringMap<llvm::TimeRecord> times;
};

} // namespace fagen
