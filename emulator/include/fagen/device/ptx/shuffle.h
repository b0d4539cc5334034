// fagen: values exchanged between the lanes of a warp, in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

inline float shuffle_xor(float value, int mask, Site site = Site::here()) {
  return engine->shuffle_xor(value, mask, site);
}

inline unsigned shuffle_xor(unsigned value, int mask, Site site = Site::here()) {
  return __builtin_bit_cast(unsigned, engine->shuffle_xor(__builtin_bit_cast(float, value), mask, site));
}
inline bool any(bool predicate, Site site = Site::here()) { return engine->vote_any(predicate, site); }

} // namespace fagen::device::ptx
