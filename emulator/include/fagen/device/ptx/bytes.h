// fagen: conversions of floats of one byte, in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/math.h>

namespace fagen::device::ptx {

/// What the two formats differ in.
template <class T> struct ByteFormat;
template <> struct ByteFormat<e4m3> {
  static constexpr int kFraction = 3, kBias = 7;
  static constexpr unsigned kLargest = 0x7e;
};
template <> struct ByteFormat<e5m2> {
  static constexpr int kFraction = 2, kBias = 15;
  static constexpr unsigned kLargest = 0x7b;
};

template <class T> inline unsigned round_byte(float x) {
  using Format = ByteFormat<T>;
  if (x != x)
    return is_uninitialised(x) ? kUninitialisedHalf & 0xffu : 0x7fu;
  const unsigned bits = float_bits(x), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
  // Below the smallest normal number adding a power of two leaves multiples of the smallest in the low bits.
  constexpr int kShift = 23 - Format::kFraction;
  constexpr unsigned kNormal = static_cast<unsigned>(128 - Format::kBias) << 23;
  constexpr unsigned kMagic = static_cast<unsigned>(127 + 1 - Format::kBias + kShift) << 23;
  unsigned rounded;
  if (magnitude < kNormal)
    rounded = float_bits(bits_float(magnitude) + bits_float(kMagic)) - kMagic;
  else
    rounded = (magnitude - (static_cast<unsigned>(127 - Format::kBias) << 23) + (1u << (kShift - 1)) - 1 +
               (magnitude >> kShift & 1)) >>
              kShift;
  return sign | (rounded < Format::kLargest ? rounded : Format::kLargest);
}

template <class T> inline unsigned short round_bytes(float low, float high) {
  return static_cast<unsigned short>(round_byte<T>(high) << 8 | round_byte<T>(low));
}

template <class T> inline unsigned widen_byte(unsigned byte);
template <> inline unsigned widen_byte<e4m3>(unsigned byte) {
  const unsigned sign = (byte & 0x80u) << 8, magnitude = byte & 0x7fu;
  if (magnitude == 0x7fu)
    return 0x7fffu;
  // Moved into place the exponent is 8 too small, which a product with 2^8 mends, for subnormals too.
  return sign | round_to<f16>(to_float(f16{static_cast<unsigned short>(magnitude << 7)}) * 0x1p8f).bits;
}
template <> inline unsigned widen_byte<e5m2>(unsigned byte) { return (byte & 0x7fu) > 0x7cu ? 0x7fffu : byte << 8; }

template <class T> inline unsigned widen_bytes(unsigned short pair) {
  return widen_byte<T>(pair >> 8) << 16 | widen_byte<T>(pair & 0xffu);
}

} // namespace fagen::device::ptx
