// fagen: standard output that could not be written is a failure.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen {

/// From now on a tool that ends, also by exit() behind --help, looks whether llvm::outs() took everything. If not, it
/// says so and ends with 1. Call it first in main(), with the tool's name.
void checkStandardOutputAtExit(const char *tool);

} // namespace fagen
