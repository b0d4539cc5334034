// fagen: the arithmetic of mma m16n8k16, as the emulator defines it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <fagen/device/ptx/engine.h>

namespace fagen::emulator {

/// One warp's operands and result in plain order.
struct Product {
  uint16_t a[16][16]; ///< row, k
  uint16_t b[16][8];  ///< k, column
  double d[16][8];    ///< on return: the dot products
};

/// d = a b: products are exact, and are added in f64 from k = 0 to 15. The result does not depend on the machine.
void multiply(device::ptx::ElementType type, Product &product);

/// accumulator + product, rounded once to f32; a NaN becomes the one that mma gives.
float addProduct(float accumulator, double product);

} // namespace fagen::emulator
