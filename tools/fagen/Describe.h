// fagen: the command line of fagen as its manual page and completions have it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "Command.h"
#include "fagen/CommandLine/Manual.h"

namespace fagen {

/// A subcommand, or the tool without one, with the options that its --help shows.
ManualCommand describe(llvm::cl::SubCommand &subcommand, llvm::StringRef examples);

} // namespace fagen
