// fagen: launches of a stream, in the emulator, where one ends before the next one begins: it looks only for who
// touches global memory without having waited. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

inline void await_launches(Site site = Site::here()) { engine->await_launches(site); }
inline void release_launches() {}

} // namespace fagen::device::ptx
