// fagen: asynchronous copies, in the emulator: they land when the launch's options say.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

template <int kBytes> inline void cp_async(unsigned target, const void *source, bool valid, Site site = Site::here()) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
  engine->copy_async(target, source, kBytes, valid, site);
}

inline void cp_async_commit(Site site = Site::here()) { engine->copy_commit(site); }

template <int kPending> inline void cp_async_wait(Site site = Site::here()) { engine->copy_wait(kPending, site); }

} // namespace fagen::device::ptx
