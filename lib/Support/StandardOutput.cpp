// fagen: standard output that could not be written is a failure.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/StandardOutput.h"

#include "llvm/Support/raw_ostream.h"

#include <cstdlib>

namespace fagen {

static const char *toolName;

static void checkStandardOutput() {
  llvm::raw_fd_ostream &out = llvm::outs();
  out.flush();
  if (!out.has_error())
    return;
  llvm::errs() << toolName << ": error: cannot write standard output: " << out.error().message() << "\n";
  std::_Exit(1);
}

void checkStandardOutputAtExit(const char *tool) {
  toolName = tool;
  // Made first, so they are taken down after the check.
  llvm::outs();
  llvm::errs();
  std::atexit(checkStandardOutput);
}

} // namespace fagen
