// fagen: standard output that could not be written is a failure.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Support/StandardOutput.h"

#include "llvm/Support/raw_ostream.h"

#include <csignal>
#include <cstdlib>

namespace fagen {

static const char *toolName;

/// What llvm::outs() did not take, in words; told once.
static std::string takeFailure() {
  llvm::raw_fd_ostream &out = llvm::outs();
  out.flush();
  if (!out.has_error())
    return {};
  std::string problem = "cannot write standard output: " + out.error().message();
  out.clear_error();
  return problem;
}

std::string flushStandardOutput() {
  // By the signal the tool would end before it has taken its temporary files away.
  void (*const before)(int) = std::signal(SIGPIPE, SIG_IGN);
  std::string problem = takeFailure();
  std::signal(SIGPIPE, before);
  return problem;
}

static void checkStandardOutput() {
  const std::string problem = takeFailure();
  if (problem.empty())
    return;
  llvm::errs() << toolName << ": error: " << problem << "\n";
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
