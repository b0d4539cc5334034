// fagen: the two 16-bit float formats, bit by bit; host code and the reference kernels share this text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Freestanding: NVRTC compiles it without any header. Rounding is to nearest, ties to even.
#pragma once

namespace fagen::lab {

enum class DType : int { F16 = 0, BF16 = 1 };

#ifdef __CUDACC_RTC__
inline unsigned bitsOfFloat(float value) { return __float_as_uint(value); }
inline float floatOfBits(unsigned bits) { return __uint_as_float(bits); }
#else
inline unsigned bitsOfFloat(float value) { return __builtin_bit_cast(unsigned, value); }
inline float floatOfBits(unsigned bits) { return __builtin_bit_cast(float, bits); }
#endif

/// value / 2^shift, rounded to nearest, ties to even. shift is 1 to 31.
inline unsigned roundedShift(unsigned value, int shift) {
  return (value + (1u << (shift - 1)) - 1 + ((value >> shift) & 1)) >> shift;
}

inline unsigned short f16OfFloat(float value) {
  unsigned bits = bitsOfFloat(value);
  unsigned sign = (bits >> 16) & 0x8000u;
  unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) // NaN stays NaN, quiet
    return static_cast<unsigned short>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) // 65520 and above round to infinity
    return static_cast<unsigned short>(sign | 0x7c00u);
  if (magnitude >= 0x38800000u) // 2^-14: normal; rebias the exponent by 112
    return static_cast<unsigned short>(sign | roundedShift(magnitude - 0x38000000u, 13));
  unsigned exponent = magnitude >> 23;
  if (exponent < 102) // below 2^-25
    return static_cast<unsigned short>(sign);
  unsigned mantissa = (magnitude & 0x7fffffu) | 0x800000u; // in units of 2^-24 after the shift
  return static_cast<unsigned short>(sign | roundedShift(mantissa, static_cast<int>(126 - exponent)));
}

inline float floatOfF16(unsigned short half) {
  unsigned sign = (half & 0x8000u) << 16;
  unsigned exponent = (half >> 10) & 0x1fu;
  unsigned mantissa = half & 0x3ffu;
  if (exponent == 31)
    return floatOfBits(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) { // zero or subnormal: mantissa * 2^-24 is exact in f32
    float value = static_cast<float>(mantissa) * floatOfBits(0x33800000u);
    return sign ? -value : value;
  }
  return floatOfBits(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

inline unsigned short bf16OfFloat(float value) {
  unsigned bits = bitsOfFloat(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<unsigned short>((bits >> 16) | 0x40u);
  return static_cast<unsigned short>(roundedShift(bits, 16) & 0xffffu);
}

inline float floatOfBF16(unsigned short half) { return floatOfBits(static_cast<unsigned>(half) << 16); }

inline unsigned short halfOfFloat(DType dtype, float value) {
  return dtype == DType::F16 ? f16OfFloat(value) : bf16OfFloat(value);
}

inline float floatOfHalf(DType dtype, unsigned short half) {
  return dtype == DType::F16 ? floatOfF16(half) : floatOfBF16(half);
}

} // namespace fagen::lab
