// fagen: floats of one byte (OCP OFP8), as values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>

namespace fagen::lab {

/// A format. e4m3 has no infinity, and 0x7f and 0xff for NaN; e5m2 is the upper half of an f16.
struct ByteFloat {
  int fractionBits, leastExponent; ///< of the smallest normal number
  unsigned char largest;           ///< bits of the largest number
  bool hasInfinity;                ///< after the largest
};
inline constexpr ByteFloat kE4M3 = {3, -6, 0x7e, false}, kE5M2 = {2, -14, 0x7b, true};

inline double valueOf(const ByteFloat &format, unsigned char bits) {
  const unsigned magnitude = bits & 0x7fu;
  if (magnitude > format.largest) {
    if (!format.hasInfinity || magnitude > format.largest + 1u)
      return NAN;
    return bits & 0x80u ? -INFINITY : INFINITY;
  }
  const int field = static_cast<int>(magnitude >> format.fractionBits), steps = 1 << format.fractionBits;
  const int fraction = static_cast<int>(magnitude) % steps + (field == 0 ? 0 : steps);
  const double value = std::ldexp(fraction, std::max(field, 1) - 1 + format.leastExponent - format.fractionBits);
  return bits & 0x80u ? -value : value;
}

/// To nearest even; beyond the largest number, infinities among them, that number; NaN is 0x7f.
inline unsigned char byteOf(const ByteFloat &format, double value) {
  if (std::isnan(value))
    return 0x7f;
  const unsigned char sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::min(std::abs(value), valueOf(format, format.largest));
  const int exponent = magnitude == 0 ? format.leastExponent : std::max(std::ilogb(magnitude), format.leastExponent);
  const auto steps = static_cast<int>(std::nearbyint(std::ldexp(magnitude, format.fractionBits - exponent)));
  return static_cast<unsigned char>(sign | (((exponent - format.leastExponent) << format.fractionBits) + steps));
}

} // namespace fagen::lab
