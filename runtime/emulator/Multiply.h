// fagen: the arithmetic of mma m16n8k16, as the emulator defines it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::emulator {

/// One warp's operands in plain order. f64 holds the values and their products exactly.
struct Product {
  double a[16][16]; ///< row, k
  double b[16][8];  ///< k, column
  double d[16][8];  ///< on return: the dot products, added from k = 0 to 15
};

/// d = a b. The result does not depend on the machine.
void multiply(Product &product);

/// Two 16-bit values of a word as f64.
void decodePair(device::ptx::ElementType type, unsigned word, double &low, double &high);

} // namespace fagen::emulator
