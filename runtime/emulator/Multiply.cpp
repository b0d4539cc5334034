// fagen: the arithmetic of mma m16n8k16, as the emulator defines it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Multiply.h"

#include <bit>
#include <cstdint>

namespace fagen::emulator {

namespace {

[[gnu::always_inline]] inline void multiplyPlain(Product &product) {
  for (int row = 0; row < 16; ++row) {
    double sum[8] = {};
    for (int k = 0; k < 16; ++k)
      for (int column = 0; column < 8; ++column)
        sum[column] += product.a[row][k] * product.b[k][column];
    for (int column = 0; column < 8; ++column)
      product.d[row][column] = sum[column];
  }
}

#if defined(__x86_64__)
// Products are exact in f64, so a fused multiply-add gives the same bits as a product and a sum.
[[gnu::target("avx2,fma")]] void multiplyAvx2(Product &product) { multiplyPlain(product); }
const bool hasAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif

double decodeF16(unsigned bits) {
  const uint64_t magnitude = bits & 0x7fffu;
  const uint64_t sign = uint64_t(bits & 0x8000u) << 48;
  if (magnitude >= 0x7c00u)
    return std::bit_cast<double>(sign | 0x7ff0000000000000u | (magnitude & 0x3ffu) << 42);
  // Moved into place the exponent is 1008 too small; the product mends it, for subnormals too.
  return std::bit_cast<double>(sign | std::bit_cast<uint64_t>(std::bit_cast<double>(magnitude << 42) * 0x1p1008));
}

} // namespace

void multiply(Product &product) {
#if defined(__x86_64__)
  if (hasAvx2)
    return multiplyAvx2(product);
#endif
  multiplyPlain(product);
}

void decodePair(device::ptx::ElementType type, unsigned word, double &low, double &high) {
  if (type == device::ptx::ElementType::kF16) {
    low = decodeF16(word & 0xffffu);
    high = decodeF16(word >> 16);
  } else {
    low = static_cast<double>(std::bit_cast<float>(word << 16));
    high = static_cast<double>(std::bit_cast<float>(word & 0xffff0000u));
  }
}

} // namespace fagen::emulator
