// fagen: how many threads are worth starting.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <thread>
#ifdef __linux__
#include <sched.h>
#endif

namespace fagen {

/// Cores that this process may use, at least one. std::thread::hardware_concurrency counts those of the machine: many
/// processes at once, each held to a core by its affinity, would have as many threads each.
inline unsigned usableCores() {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
#ifdef __linux__
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof(mine), &mine) == 0)
    return std::clamp<unsigned>(static_cast<unsigned>(CPU_COUNT(&mine)), 1, cores);
#endif
  return cores;
}

} // namespace fagen
