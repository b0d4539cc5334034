// fagen: nvcc, for what the driver asks of it: PTX, machine code, and what ptxas says about resources.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>
#include <string>

namespace fagen {

/// What ptxas says of one kernel.
struct PtxasFigures {
  unsigned registers = 0;
  uint64_t spillBytes = 0;   ///< stored + loaded
  uint64_t staticShared = 0; ///< bytes; generated kernels have none
};

/// Figures of the entry function `symbol` in the text that `ptxas -v` prints; nothing when it does not speak of it.
std::optional<PtxasFigures> parsePtxas(llvm::StringRef text, llvm::StringRef symbol);

class Diagnostics;

class Nvcc {
public:
  /// Looks for the program and the device headers; see missing().
  Nvcc(llvm::StringRef program, llvm::StringRef deviceInclude, const char *argv0);

  /// Empty when everything was found; else what was not: "no nvcc on PATH".
  const std::string &missing() const { return missingPart; }

  /// "13.0.88", as nvcc --version says; empty where it names none.
  std::string version() const;

  /// Warns where the machine code comes from a toolchain by which nobody has looked at the shipped kernels.
  void warnOfOtherVersion(Diagnostics &diags) const;

  struct Result {
    bool ok = false;
    std::string output; ///< the PTX or cubin
    std::string log;    ///< all that nvcc and ptxas printed
  };
  /// `kind` is "ptx" or "cubin". Safe to call from several threads.
  Result compile(llvm::StringRef source, llvm::StringRef target, llvm::StringRef kind) const;

private:
  /// Runs nvcc with the arguments; what it prints goes to the file `log`. What went wrong is in `problem`.
  int run(llvm::ArrayRef<llvm::StringRef> arguments, llvm::StringRef log, std::string &problem) const;

  std::string program;
  std::string includeDirectory;
  std::string missingPart;
};

} // namespace fagen
