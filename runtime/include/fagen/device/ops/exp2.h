// fagen: 2^x by the special-function unit, or by a polynomial that leaves the unit to others; the exponents of terms.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// x = n + f with n the nearest integer, and 2^x = 2^n 2^f (the range reduction of Cody and Waite). For |f| <= 1/2 the
// polynomial of degree 5 is 1 at 0 and else within 2^-23.3 of 2^f (Remez' exchange; the coefficients of f^3 and f^4
// chosen again once all were rounded to f32).
#pragma once

#include <fagen/device/ptx/math.h>

namespace fagen::device {

/// 2^x, relative error at most 2^-22.5 (2.02 ulp), and none where x is an integer. 0 below -126.5, subnormal down to
/// there, infinite from 127.5 on: what is too large never comes back small. 2^NaN is NaN.
/// It waits for `after`, which must not be negative: ptxas would else put all polynomials, which take long, before
/// all that the special-function unit does.
__device__ __forceinline__ float exp2_by_polynomial(float x, float after = 0.0f) {
  // 1.5 2^23 + 127, so large that sums with it are rounded to integers: the low bits of them are n + 127.
  const float rounder = ptx::bits_float(0x4b40007fu + (ptx::float_bits(after) >> 31));
  const float bounded = ptx::min_or_nan(ptx::max_or_nan(x, -127.0f), 128.0f);
  const float rounded = ptx::add(bounded, rounder);
  const float f = ptx::add(bounded, -ptx::add(rounded, -rounder));
  float power = ptx::fma(0.00132647273f, f, 0.00967154093f);
  power = ptx::fma(power, f, 0.0555072911f);
  power = ptx::fma(power, f, 0.240222424f);
  power = ptx::fma(power, f, 0.693147004f);
  power = ptx::fma(power, f, 1.0f);
  return ptx::mul(power, ptx::bits_float(ptx::float_bits(rounded) << 23)); // times 2^n: 0 for n = -127, inf for 128
}

/// 2^x of terms one after the other: each kEvery-th by polynomial, with 0 none.
template <int kEvery> class TermExp2 {
public:
  __device__ __forceinline__ float operator()(float x) {
    if constexpr (kEvery == 0) {
      return ptx::exp2(x);
    } else {
      if (++terms % kEvery != 0)
        return ptx::exp2(x);
      return last = exp2_by_polynomial(x, last);
    }
  }
  /// The polynomials of other terms need not be waited for.
  __device__ __forceinline__ void fork() { last = 0.0f; }

private:
  int terms = 0;
  float last = 0.0f; ///< polynomial
};

/// How a term's exponent c (s - m) is computed. kFused: as c s - c m, one multiply-add a score. It is off by what c m
/// is rounded by, which is next to nothing where scores are at most some thousands. kDifference: the difference first,
/// which is exact where s and m are near each other, whatever their size (docs/internals/Arithmetic.md).
enum class Exponent { kFused, kDifference };
constexpr Exponent kOfDifference = Exponent::kDifference;
/// Of a row's maximum: below it kFused is off by no more than in kernels whose scores are small, 2^-13.5 of each term.
[[maybe_unused]] constexpr float kSmallMaximum = 1024.0f;

/// Of one row; m is finite, or less than every s that matters.
template <Exponent kHow> class RowExponent {
public:
  __device__ __forceinline__ RowExponent(float m, float c)
      : c(c), shift(kHow == Exponent::kFused ? -ptx::mul(m, c) : m) {}
  __device__ __forceinline__ float operator()(float s) const {
    if constexpr (kHow == Exponent::kFused)
      return ptx::fma(s, c, shift);
    else
      return ptx::mul(s - shift, c);
  }

private:
  float c, shift;
};

} // namespace fagen::device
