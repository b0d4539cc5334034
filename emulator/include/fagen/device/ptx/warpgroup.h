// fagen: what surrounds the products of a warp group, in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>
#include <fagen/device/ptx/threads.h>

namespace fagen::device::ptx {

inline void wgmma_fence(Site site = Site::here()) { engine->wgmma_fence(site); }
inline void wgmma_commit(Site site = Site::here()) { engine->wgmma_commit(site); }
template <int kPending> inline void wgmma_wait(Site site = Site::here()) { engine->wgmma_wait(kPending, site); }
template <int kCount> inline void pin_registers(float (&)[kCount]) {}

template <int kRegisters> inline void setmaxnreg_dec(Site site = Site::here()) {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0, "a multiple of 8 from 24 to 256");
  engine->setmaxnreg(kRegisters, false, site);
}
template <int kRegisters> inline void setmaxnreg_inc(Site site = Site::here()) {
  static_assert(kRegisters >= 24 && kRegisters <= 256 && kRegisters % 8 == 0, "a multiple of 8 from 24 to 256");
  engine->setmaxnreg(kRegisters, true, site);
}

inline int warp_group_index() { return thread_index() / 128; }
inline bool elect_one(Site site = Site::here()) { return engine->elect_one(site); }

} // namespace fagen::device::ptx
