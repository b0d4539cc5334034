// fagen: what a tool says when it crashes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen {

/// From now on a crash of the tool is told on standard error, with the program's call stack, and the process then ends
/// by the signal. Of a stack that is exhausted this holds on the thread that calls it; on another the signal ends the
/// process at once.
void reportCrashes(const char *tool);

} // namespace fagen
