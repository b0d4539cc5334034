// fagen: the way of a command: read specs, check them, lower every variant, write everything or nothing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "CommandLine.h"
#include "Compile.h"
#include "fagen/Passes/PipelineRunner.h"
#include "fagen/Support/OutputSet.h"
#include "programs/Programs.h"

namespace fagen {

enum ExitCode : int { kDone = 0, kUserMistake = 1, kGateFailed = 2, kInternalError = 70 };

class Nvcc;

class Driver {
public:
  /// Diagnostics go to `errors`, which must outlive this object.
  Driver(DriverOptions given, const char *argv0, llvm::raw_ostream &errors);

  /// Reads, checks and writes what the options say, and prints what was wrong.
  ExitCode run();

  /// The specs that were read, and the kernels that were compiled. All of them where run() gave kDone.
  llvm::ArrayRef<SpecFile> getFiles() const { return files; }
  llvm::ArrayRef<CompiledKernel> getKernels() const { return kernels; }
  /// The spec's file as it was given.
  llvm::StringRef pathOf(const CompiledKernel &kernel) const;

private:
  ExitCode compile();
  bool checkOptions();
  void checkRunPasses();
  void readSpecs();
  void applyTimes();
  std::string resourceVeto(const Nvcc &nvcc, const KernelSpec &kernel, const Variant &variant);
  void compileKernels();
  CompiledKernel *findSet();
  void checkGates();
  void makeMachineCode();
  bool writeKernels();
  bool writeSingle();
  bool writeText(llvm::StringRef text);
  ExitCode result() const;

  DriverOptions options;
  const char *argv0;
  llvm::SourceMgr sources;
  Diagnostics diags;
  PipelineRunner runner;
  Lowering lowering; ///< of what the checks of the specs looked at
  std::vector<SpecFile> files;
  std::vector<llvm::StringRef> texts; ///< of the files
  Programs programs;
  std::vector<CompiledKernel> kernels;
  std::vector<OutputSet> outputs; ///< of the kernels
  bool gatesPassed = true;
};

} // namespace fagen
