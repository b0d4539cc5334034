// fagen: products of a warp group of small whole numbers, which are exact.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "cases.h"

namespace fagen::lab {

/// -8 to 8, as in kernels/conformance_sm90a.cu and conformance_bytes.cu. Of matrix 0, A, and 1, B.
inline int smallNumber(uint32_t seed, uint32_t matrix, uint32_t row, uint32_t column) {
  uint32_t x = seed + 0x9e3779b9u * (matrix + 1) + 0x85ebca6bu * row + 0xc2b2ae35u * column;
  x ^= x >> 15;
  x *= 0x2c1b3c6du;
  x ^= x >> 12;
  return static_cast<int>(x % 17) - 8;
}

/// D + A B of the accumulators of one N: register i of thread t is word 128 i + t. At most 64 k + 125.
inline void expectProduct(uint32_t seed, unsigned k, unsigned n, uint32_t *out) {
  for (unsigned i = 0; i < n / 2; ++i)
    for (unsigned t = 0; t < kThreads; ++t) {
      const unsigned row = t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + t % 4 * 2 + i % 2;
      int sum = static_cast<int>(i) - 3;
      for (unsigned j = 0; j < k; ++j)
        sum += smallNumber(seed, 0, row, j) * smallNumber(seed, 1, j, column);
      out[kThreads * i + t] = asWord(static_cast<float>(sum));
    }
}

} // namespace fagen::lab
