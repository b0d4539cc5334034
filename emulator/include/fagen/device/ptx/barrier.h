// fagen: barriers, in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

inline void cta_barrier(Site site = Site::here()) { engine->cta_barrier(site); }

inline void warp_barrier(Site site = Site::here()) { engine->warp_barrier(site); }

inline void named_barrier(int id, int threads, Site site = Site::here()) {
  engine->named_barrier(id, threads, true, site);
}

inline void named_barrier_arrive(int id, int threads, Site site = Site::here()) {
  engine->named_barrier(id, threads, false, site);
}

} // namespace fagen::device::ptx
