// fagen: how the tensor cores of sm_90 add products of bytes, as the emulator computes it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ByteSum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace fagen::emulator {

namespace {

constexpr int kKeptBits = 13;        ///< below the largest exponent, and of the result's fraction
constexpr int kLeastExponent = -126; ///< of the smallest normal f32: no step aligns below it
constexpr uint32_t kNan = 0x7fffffffu;

/// significand * 2^(exponent - 3).
struct Factor {
  int16_t significand = 0, exponent = 0;
};

constexpr bool isNan(uint8_t bits) { return (bits & 0x7f) == 0x7f; }

constexpr std::array<Factor, 256> makeFactors() {
  std::array<Factor, 256> factors{};
  for (unsigned bits = 0; bits < 256; ++bits) {
    const int field = bits >> 3 & 15, fraction = bits & 7;
    const int magnitude = field == 0 ? fraction : fraction + 8;
    factors[bits] = {static_cast<int16_t>(bits & 0x80 ? -magnitude : magnitude),
                     static_cast<int16_t>(std::max(field, 1) - 7)};
  }
  return factors;
}

constexpr std::array<Factor, 256> kFactors = makeFactors();

/// magnitude * 2^exponent, cut to multiples of 2^unit, in these.
int64_t cutTo(int unit, int64_t significand, int exponent) {
  const int shift = exponent - unit;
  const int64_t magnitude = std::abs(significand);
  const int64_t kept = shift >= 0 ? magnitude << shift : shift > -63 ? magnitude >> -shift : 0;
  return significand < 0 ? -kept : kept;
}

/// The sum's magnitude cut to 13 bits of fraction; a sum of zero is +0.
float resultOf(int64_t sum, int unit) {
  const auto magnitude = static_cast<uint64_t>(std::abs(sum));
  const int surplus = std::max(static_cast<int>(std::bit_width(magnitude)) - 1 - kKeptBits, 0);
  const double value = std::ldexp(static_cast<double>(magnitude >> surplus), unit + surplus);
  if (value > 0x1.fffffep127)
    return sum < 0 ? -INFINITY : INFINITY;
  return static_cast<float>(sum < 0 ? -value : value);
}

} // namespace

float addByteProducts(const uint8_t *a, const uint8_t *b, float accumulator) {
  const uint32_t bits = std::bit_cast<uint32_t>(accumulator);
  const int field = static_cast<int>(bits >> 23 & 0xff);
  bool isAnyNan = std::isnan(accumulator);
  int largest = kLeastExponent;
  for (unsigned k = 0; k < kByteDepth; ++k) {
    const Factor &x = kFactors[a[k]], &y = kFactors[b[k]];
    isAnyNan |= isNan(a[k]) || isNan(b[k]);
    if (x.significand && y.significand)
      largest = std::max(largest, x.exponent + y.exponent);
  }
  if (isAnyNan)
    return std::bit_cast<float>(kNan);
  if (std::isinf(accumulator))
    return accumulator;
  if (accumulator != 0)
    largest = std::max(largest, std::max(field, 1) - 127);
  const int unit = largest - kKeptBits;
  int64_t sum = 0;
  for (unsigned k = 0; k < kByteDepth; ++k) {
    const Factor &x = kFactors[a[k]], &y = kFactors[b[k]];
    sum += cutTo(unit, x.significand * y.significand, x.exponent + y.exponent - 6);
  }
  const int64_t significand = (bits & 0x7fffff) | (field == 0 ? 0 : 0x800000);
  sum += cutTo(unit, bits >> 31 ? -significand : significand, std::max(field, 1) - 127 - 23);
  return resultOf(sum, unit);
}

} // namespace fagen::emulator
