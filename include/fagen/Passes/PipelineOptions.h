// fagen: the options that fagen and fagen-opt share.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/Support/CommandLine.h"

#include <string>
#include <vector>

namespace fagen {

struct PipelineOptions {
  std::vector<std::string> runPasses;  ///< these in this order instead of the default pipeline
  std::vector<std::string> printAfter; ///< print the IR after these passes
  bool printAfterAll = false;
  std::vector<std::string> printOf; ///< print the IR of these programs alone; empty: of all
  std::string stopAfter;            ///< empty: run to the end
  bool verifyEach = false;          ///< verify the IR after each pass, not only after the last
  bool timePasses = false;
};

/// The command line's share: construct it in main before cl::ParseCommandLineOptions, then ask get().
class PipelineFlags {
public:
  PipelineOptions get() const;
  llvm::cl::OptionCategory &getCategory() { return category; } ///< to keep these options in --help

private:
  llvm::cl::OptionCategory category{"Pass options"};
  llvm::cl::list<std::string> runPasses{"run-pass", llvm::cl::value_desc("pass"), llvm::cl::cat(category),
                                        llvm::cl::desc("run this pass instead of the pipeline; may be repeated")};
  llvm::cl::list<std::string> printAfter{"print-after", llvm::cl::value_desc("pass"), llvm::cl::cat(category),
                                         llvm::cl::CommaSeparated, llvm::cl::desc("print the IR after this pass")};
  llvm::cl::opt<bool> printAfterAll{"print-after-all", llvm::cl::cat(category),
                                    llvm::cl::desc("print the IR after each pass")};
  llvm::cl::opt<std::string> stopAfter{"stop-after", llvm::cl::value_desc("pass"), llvm::cl::cat(category),
                                       llvm::cl::desc("run no pass after this one")};
  llvm::cl::opt<bool> verifyEach{"verify-each", llvm::cl::cat(category),
                                 llvm::cl::desc("verify the IR after each pass")};
  llvm::cl::opt<bool> timePasses{"time-passes", llvm::cl::cat(category),
                                 llvm::cl::desc("print how long each pass took")};
};

} // namespace fagen
