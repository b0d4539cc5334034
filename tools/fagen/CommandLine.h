// fagen: the driver's command line.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/CommandLine/Manual.h"
#include "fagen/Emit/Kernel.h"
#include "fagen/Passes/PipelineOptions.h"
#include "fagen/Support/Diagnostics.h"

#include <string>
#include <vector>

namespace fagen {

enum class EmitKind : uint8_t { Files, Spec, Plan, IR, Cuda, Ptx, Cubin, Table, Barriers, Mutants, Single, Nothing };

struct DriverOptions {
  std::vector<std::string> specs;
  std::vector<std::string> programs; ///< textual IR
  std::string set;                   ///< which kernel set programs stand in; empty: the only one
  std::string output;                ///< directory of the kernel sets; with another emit a file, - for stdout
  std::vector<std::string> targets;  ///< instead of those of the specs, if any
  std::vector<std::string> variants; ///< only these, for everything but Files; empty: all
  EmitKind emit = EmitKind::Files;
  bool json = false;               ///< of Barriers, and of Plan with shapes
  std::vector<std::string> shapes; ///< of Plan: that the model's times are asked for
  std::string gpu;                 ///< target whose GPU the model is asked about; empty: each variant's own
  bool checkResources = false;
  std::vector<unsigned> cubins; ///< compute capabilities that the kernel sets get machine code for
  bool showRemarks = false;
  Instrument instrument = Instrument::None;
  std::string tuned;         ///< file of measured times; empty: none
  std::string deviceInclude; ///< empty: found next to the executable
  std::string nvcc;          ///< empty: found on PATH
  DiagnosticsFormat diagnostics = DiagnosticsFormat::Text;
  PipelineOptions pipeline;
};

/// What --version says.
void setVersionPrinter();

/// The command line without a subcommand, for manual pages and completions.
ManualCommand describeCommandLine();

/// Exits with code 1 on a mistake in the command line, and with 0 after --help or --version.
DriverOptions parseCommandLine(int argc, char **argv);

} // namespace fagen
