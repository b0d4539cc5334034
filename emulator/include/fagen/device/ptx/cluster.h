// fagen: CTAs that run together, in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

__attribute__((const, noinline)) inline unsigned cluster_rank() { return engine->cluster_rank(); }
__attribute__((const, noinline)) inline unsigned cluster_size() { return engine->cluster_size(); }
inline void cluster_arrive(Site site = Site::here()) { engine->cluster_arrive(site); }
inline void cluster_wait(Site site = Site::here()) { engine->cluster_wait(site); }

} // namespace fagen::device::ptx
