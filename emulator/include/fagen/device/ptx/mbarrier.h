// fagen: barriers in shared memory, in the emulator. A wait that must wait does so until it is over.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

inline void mbarrier_init(unsigned barrier, int arrivals, Site site = Site::here()) {
  engine->mbarrier_init(barrier, arrivals, site);
}
inline void mbarrier_init_fence(Site site = Site::here()) { engine->mbarrier_init_fence(site); }
inline void mbarrier_arrive(unsigned barrier, Site site = Site::here()) { engine->mbarrier_arrive(barrier, 0, site); }
inline void mbarrier_arrive_expect(unsigned barrier, int bytes, Site site = Site::here()) {
  engine->mbarrier_arrive(barrier, bytes, site);
}
inline void mbarrier_arrive_at(unsigned barrier, unsigned rank, Site site = Site::here()) {
  engine->mbarrier_arrive_at(barrier, rank, site);
}
inline bool mbarrier_try_wait(unsigned barrier, unsigned parity, Site site = Site::here()) {
  engine->mbarrier_wait(barrier, parity, site);
  return true;
}
inline void mbarrier_wait(unsigned barrier, unsigned parity, Site site = Site::here()) {
  engine->mbarrier_wait(barrier, parity, site);
}

} // namespace fagen::device::ptx
