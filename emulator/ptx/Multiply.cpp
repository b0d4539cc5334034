// fagen: the arithmetic of mma m16n8k16, as the emulator defines it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Multiply.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace fagen::emulator {

namespace {

using device::ptx::ElementType;

[[gnu::always_inline]] inline float decode(ElementType type, uint32_t bits) {
  if (type == ElementType::kBf16)
    return std::bit_cast<float>(bits << 16);
  const uint32_t magnitude = bits & 0x7fffu;
  const uint32_t sign = (bits & 0x8000u) << 16;
  // Moved into place the exponent is 112 too small; the product mends it, for subnormals too.
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
  const uint32_t special = 0x7f800000u | magnitude << 13;
  return std::bit_cast<float>(sign | (magnitude >= 0x7c00u ? special : finite));
}

template <ElementType kType, int kCount>
[[gnu::always_inline]] inline void decodeAll(double *values, const uint16_t *bits) {
  for (int i = 0; i < kCount; ++i)
    values[i] = static_cast<double>(decode(kType, bits[i]));
}

using Quad = double __attribute__((vector_size(32)));

/// Two rows at a time: four sums that do not wait for each other. Products of 16-bit values are exact in f64, so a
/// fused multiply-add gives the same bits as a product and a sum.
template <ElementType kType> [[gnu::always_inline]] inline void multiplyRows(Product &product) {
  alignas(32) double a[16][16];
  alignas(32) double b[16][8];
  decodeAll<kType, 256>(a[0], product.a[0]);
  decodeAll<kType, 128>(b[0], product.b[0]);
  for (int row = 0; row < 16; row += 2) {
    Quad sum[2][2] = {};
    for (int k = 0; k < 16; ++k) {
      Quad right[2];
      std::memcpy(right, b[k], sizeof(right));
      for (int i = 0; i < 2; ++i) {
        sum[i][0] += a[row + i][k] * right[0];
        sum[i][1] += a[row + i][k] * right[1];
      }
    }
    std::memcpy(product.d[row], sum, sizeof(sum));
  }
}

[[gnu::always_inline]] inline void multiplyAny(ElementType type, Product &product) {
  if (type == ElementType::kF16)
    multiplyRows<ElementType::kF16>(product);
  else
    multiplyRows<ElementType::kBf16>(product);
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void multiplyAvx2(ElementType type, Product &product) { multiplyAny(type, product); }
const bool hasAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif

} // namespace

void multiply(ElementType type, Product &product) {
#if defined(__x86_64__)
  if (hasAvx2)
    return multiplyAvx2(type, product);
#endif
  multiplyAny(type, product);
}

float addProduct(float accumulator, double product) {
  const double sum = static_cast<double>(accumulator) + product;
  return std::isnan(sum) ? std::bit_cast<float>(0x7fffffffu) : static_cast<float>(sum);
}

} // namespace fagen::emulator
