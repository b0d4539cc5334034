// fagen: programs of textual IR: read, and what is left to lower them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/Support/Diagnostics.h"

#include <memory>
#include <string>
#include <vector>

namespace fagen {

struct TextualProgram {
  std::unique_ptr<ir::Program> program; ///< verified, or null after a reported mistake
  std::string after;                    ///< the last pass that its kernels went through; empty: their phase tells
};

/// The program of a file (- is standard input).
TextualProgram readProgram(llvm::StringRef path, Diagnostics &diags);

/// The passes of the pipeline after the last one. Where the text does not say which that was: from the program's phase
/// on, but for those that read a schedule.
std::vector<std::string> passesLeft(TextualProgram &text);

} // namespace fagen
