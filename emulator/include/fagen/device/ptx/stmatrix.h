// fagen: 8x8 matrices of 16-bit elements from fragments to shared memory, in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

inline void stmatrix_x4(unsigned address, const unsigned (&matrix)[4], Site site = Site::here()) {
  engine->store_matrices(address, matrix, false, site);
}
inline void stmatrix_x4_trans(unsigned address, const unsigned (&matrix)[4], Site site = Site::here()) {
  engine->store_matrices(address, matrix, true, site);
}

} // namespace fagen::device::ptx
