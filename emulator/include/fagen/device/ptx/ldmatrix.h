// fagen: 8x8 matrices of 16-bit elements from shared memory to fragments, in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

inline void ldmatrix_x4(unsigned (&matrix)[4], unsigned address, Site site = Site::here()) {
  engine->load_matrices(matrix, address, false, site);
}

inline void ldmatrix_x4_trans(unsigned (&matrix)[4], unsigned address, Site site = Site::here()) {
  engine->load_matrices(matrix, address, true, site);
}

} // namespace fagen::device::ptx
