// fagen: how the driver takes memory from the system.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A run is short: taking memory page by page is a part of its time that one can see. Where a C library or a system
// offers none of this, nothing is done.
#pragma once

namespace fagen {

/// Threads take memory in large pieces and give none back: a run is shorter than what that saves takes, and threads
/// wait for each other there. To be called before anything is allocated.
void keepMemory();

/// What the calling thread allocates from now on lies in large pages.
void takeLargePages();

} // namespace fagen
