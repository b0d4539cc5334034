// fagen: mistakes on the command line, in the form that was asked for.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "llvm/ADT/StringRef.h"

namespace fagen {

/// Parses the command line with the options that are registered. Exits with 1 on a mistake, which is printed as JSON
/// when the command line has --diagnostics=json, and with 0 after --help or --version.
void parseOrExit(int argc, char **argv, llvm::StringRef overview);

} // namespace fagen
