// fagen: clocks, in the emulator: a thread's clock counts how often the thread has read it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Time means nothing here, but a count does: the clocks of a stage are the times that its end was told.
#pragma once

#include <fagen/device/ptx/threads.h>

namespace fagen::device::ptx {

/// Of each thread of the CTA that runs on this OS thread. Never set back: it only grows, as on a GPU.
inline unsigned &clock_of_thread() {
  static thread_local unsigned clocks[1024];
  return clocks[thread_index()];
}

inline unsigned clock32() { return ++clock_of_thread(); }
inline unsigned long long clock64() { return clock_of_thread(); }
inline unsigned long long global_nanoseconds() { return clock_of_thread(); }
inline unsigned sm_index() { return 0; }

} // namespace fagen::device::ptx
