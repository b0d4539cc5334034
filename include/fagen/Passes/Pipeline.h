// fagen: the order of passes, and what runs them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/Passes/Passes.h"
#include "fagen/Passes/PipelineOptions.h"

#include "llvm/Support/Timer.h"

namespace fagen {

/// A pass changes one kernel and knows nothing of the others; true when it changed it.
using PassFunction = bool (*)(ir::Kernel &kernel, PassContext &context);

struct PassEntry {
  llvm::StringLiteral name; ///< as --run-pass= spells it
  PassFunction function;
  bool (*appliesTo)(const ir::Kernel &kernel); ///< the others stay as they are
  bool needsVariant;                           ///< reads the schedule, so it cannot run on IR from text
  ir::Phase needs;                             ///< at least
  /// At most, too, before it; a pass that only looks leaves an earlier one, and runs in all later.
  ir::Phase leaves;

  bool run(ir::Kernel &kernel, PassContext &context) const { return appliesTo(kernel) && function(kernel, context); }
};

/// The passes of the default pipeline, in order. Passes.td says why each stands where it stands.
llvm::ArrayRef<PassEntry> pipelinePasses();
/// Any pass, also those that are only run by name; null when there is none of that name.
const PassEntry *lookupPass(llvm::StringRef name);

enum class PipelineResult : uint8_t { Finished, Stopped, Failed };

/// Runs passes over programs. It alone prints, times and verifies; passes do none of that.
class PipelineRunner {
public:
  /// Writes what the options ask for to `os`.
  PipelineRunner(const PipelineOptions &options, llvm::raw_ostream &os);
  /// Reports pass names of the options that nobody has; false if there is one.
  bool checkNames(Diagnostics &diags) const;
  /// Every pass over each kernel of the program, or the passes of --run-pass. Stops after the first pass after which
  /// there are errors (Failed), and after that of --stop-after (Stopped).
  PipelineResult run(ir::Program &program, PassContext &context);
  /// The table of --time-passes over all programs so far; nothing without that option.
  void printTimes();

private:
  bool runPass(const PassEntry &pass, ir::Program &program, PassContext &context, bool isLast);
  bool runOnKernel(const PassEntry &pass, ir::Kernel &kernel, PassContext &context);
  bool runTimed(const PassEntry &pass, ir::Kernel &kernel, PassContext &context);
  void verifyAfter(const PassEntry &pass, const ir::Program &program, PassContext &context);
  void printAfter(const PassEntry &pass, const ir::Program &program, bool changed);
  bool prints(const PassEntry &pass, const ir::Program &program) const;

  const PipelineOptions &options;
  llvm::raw_ostream &os;
  llvm::StringMap<llvm::TimeRecord> times;
};

} // namespace fagen
