// fagen: messages about text that has long lines, or quote long words, stay readable.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/Support/SourceMgr.h"

#include <string>

namespace fagen {

/// The message, each of whose lines has at most 1000 bytes: "..." stands for what is cut from its middle.
std::string withShortLines(std::string message);

/// Prints as the diagnostic itself does; of a line of more than 160 bytes what stands around the caret.
void printWithShortLine(const llvm::SMDiagnostic &diagnostic, llvm::raw_ostream &os);

} // namespace fagen
