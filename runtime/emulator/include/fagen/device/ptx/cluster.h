// fagen: CTAs that run together, in the emulator: each is alone in its cluster.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

inline unsigned cluster_rank() { return 0; }
inline unsigned cluster_size() { return 1; }
inline void cluster_arrive(Site = Site::here()) {}
inline void cluster_wait(Site site = Site::here()) { engine->cta_barrier(site); }

} // namespace fagen::device::ptx
