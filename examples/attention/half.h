// fagen: IEEE half precision on the host, for the example's values.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <vector>

using Half = unsigned short;

/// For normal numbers and zero, truncating: enough for the values here.
inline Half toHalf(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, 4);
  return value == 0 ? 0 : Half(((bits >> 16) & 0x8000) | (((bits >> 13) - (112 << 10)) & 0x7FFF));
}

inline float toFloat(Half half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  const float magnitude =
      exponent ? std::ldexp(float(1024 + mantissa), exponent - 25) : std::ldexp(float(mantissa), -24);
  return half & 0x8000 ? -magnitude : magnitude;
}

/// Values from -2 to 2.
inline std::vector<Half> randomHalves(size_t count, unsigned seed) {
  std::vector<Half> values(count);
  for (Half &value : values) {
    seed = seed * 1664525 + 1013904223;
    value = toHalf(float(int(seed >> 20) - 2048) / 1024);
  }
  return values;
}
