// fagen: words that come from registers which nobody wrote.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <cstring>
#include <fagen/device/ptx/engine.h>

namespace fagen::emulator {

/// A f32, of either sign, or a pair of 16-bit elements.
inline bool isUninitialised(uint32_t word) { return (word | 0x80000000u) == device::ptx::kUninitialised; }

/// Whether one of the whole words in `bytes` bytes is such. A single 16-bit element cannot be told from other NaNs.
inline bool holdsUninitialised(const void *value, unsigned bytes) {
  bool holds = false;
  for (unsigned i = 0; i + sizeof(uint32_t) <= bytes; i += sizeof(uint32_t)) {
    uint32_t word;
    std::memcpy(&word, static_cast<const char *>(value) + i, sizeof(word));
    holds |= isUninitialised(word);
  }
  return holds;
}

} // namespace fagen::emulator
