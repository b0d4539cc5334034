// fagen: barriers, in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

inline void cta_barrier(Site site = Site::here()) { engine->cta_barrier(site); }

inline void warp_barrier(Site site = Site::here()) { engine->warp_barrier(site); }

} // namespace fagen::device::ptx
