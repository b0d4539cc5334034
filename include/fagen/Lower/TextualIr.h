// fagen: programs of textual IR: read, and what is left to lower them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fagen/IR/IR.h"
#include "fagen/Support/Diagnostics.h"

#include <memory>
#include <string>
#include <vector>

namespace fagen {

/// The verified program of a file (- is standard input), or null after a reported mistake.
std::unique_ptr<ir::Program> readProgram(llvm::StringRef path, Diagnostics &diags);

/// The passes of the pipeline from the program's phase on, but for those that read a schedule.
std::vector<std::string> passesLeft(const ir::Program &program);

} // namespace fagen
