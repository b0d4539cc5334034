// fagen: standard output that could not be written is a failure.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace fagen {

/// From now on a tool that ends, also by exit() after --help, looks whether llvm::outs() took everything. If not, it
/// says so and ends with 1. Call it first in main(), with the tool's name.
void checkStandardOutputAtExit(const char *tool);

/// Flushes llvm::outs(), and says why it did not take everything; empty when it did. A tool asks before it changes
/// files, so that it leaves none when its output fails. A closed pipe is a failure here, not a signal.
std::string flushStandardOutput();

} // namespace fagen
