// fagen: arithmetic that must be one known instruction, in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>
#include <fagen/device/types.h>

namespace fagen::device::ptx {

inline unsigned float_bits(float x) {
  unsigned bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return bits;
}

inline float bits_float(unsigned bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof(x));
  return x;
}

/// Subnormals become zero of the same sign.
inline float flush_subnormal(float x) {
  const unsigned bits = float_bits(x);
  return (bits & 0x7f800000u) == 0 ? bits_float(bits & 0x80000000u) : x;
}

/// Whether x comes from a register that nobody wrote; signs change on the way.
inline bool is_uninitialised(float x) { return (float_bits(x) | 0x80000000u) == kUninitialised; }

/// The one NaN that instructions on f32 give, whatever the payloads of their operands.
inline float canonical_nan(float x) { return x != x && !is_uninitialised(x) ? bits_float(0x7fffffffu) : x; }

inline float negative_infinity() { return bits_float(0xff800000u); }

inline float exp2(float x) { return canonical_nan(flush_subnormal(__builtin_exp2f(flush_subnormal(x)))); }

inline float log2(float x) {
  const float flushed = flush_subnormal(x);
  return flushed == 0.0f ? negative_infinity() : canonical_nan(flush_subnormal(__builtin_log2f(flushed)));
}

inline float tanh(float x) { return canonical_nan(__builtin_tanhf(x)); }

// The compiler is told never to contract a product and an addition (-ffp-contract=off), so these are one rounding each.
inline float fma(float a, float b, float c) { return canonical_nan(__builtin_fmaf(a, b, c)); }
inline float mul(float a, float b) { return canonical_nan(a * b); }
inline float add(float a, float b) { return canonical_nan(a + b); }
inline float div(float a, float b) { return canonical_nan(a / b); }

inline float sqrt(float x) { return canonical_nan(__builtin_sqrtf(x)); }

inline float max(float a, float b) {
  if (a != a)
    return is_uninitialised(a) ? a : canonical_nan(b);
  if (a == 0.0f && b == 0.0f) // -0 < +0
    return bits_float(float_bits(a) & float_bits(b));
  return a < b || is_uninitialised(b) ? b : a;
}

inline float max_or_nan(float a, float b) { return a != a || b != b ? canonical_nan(a + b) : max(a, b); }
inline float min_or_nan(float a, float b) { return a != a || b != b ? canonical_nan(a + b) : -max(-a, -b); }

/// The NaN that a NaN becomes in 16 bits: the one that cvt gives.
inline unsigned short half_nan(float nan) { return is_uninitialised(nan) ? kUninitialisedHalf : 0x7fffu; }

/// f32 to a 16-bit type, to nearest even.
template <class T> inline T round_to(float x);

template <> inline f16 round_to<f16>(float x) {
  const unsigned bits = float_bits(x);
  const unsigned sign = bits >> 16 & 0x8000u;
  const unsigned magnitude = bits & 0x7fffffffu;
  unsigned half;
  if (magnitude > 0x7f800000u)
    return {half_nan(x)};
  if (magnitude >= 0x477ff000u) // from half way between the largest f16 and 2^16 on
    half = 0x7c00u;
  else if (magnitude < 0x38800000u) // below 2^-14: adding 1/2 leaves multiples of 2^-24 in the low bits
    half = float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u;
  else
    half = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13;
  return {static_cast<unsigned short>(sign | half)};
}

template <> inline bf16 round_to<bf16>(float x) {
  const unsigned bits = float_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return {half_nan(x)};
  return {static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16)};
}

/// Two f32 to a pair in one word, `low` in the lower half.
template <class T> inline unsigned round_pair(float low, float high) {
  return static_cast<unsigned>(round_to<T>(high).bits) << 16 | round_to<T>(low).bits;
}

inline float to_float(f16 x) {
  const unsigned magnitude = x.bits & 0x7fffu;
  const unsigned sign = (x.bits & 0x8000u) << 16;
  if (magnitude >= 0x7c00u)
    return magnitude == 0x7c00u ? bits_float(sign | 0x7f800000u) : bits_float(0x7fffffffu);
  // Moved into place the exponent is 112 too small; the product mends it, for subnormals too.
  return bits_float(sign | float_bits(bits_float(magnitude << 13) * 0x1p112f));
}

inline float to_float(bf16 x) { return bits_float(static_cast<unsigned>(x.bits) << 16); }

} // namespace fagen::device::ptx
