// fagen: how much of a sum of products tensor cores may lose; host code and the reference kernels share this text.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// docs/Checking.md derives it. Freestanding: NVRTC compiles it after numeric.h.
#pragma once

#ifndef __CUDACC_RTC__
#include "numeric.h"
#endif

namespace fagen::lab {

/// How a matrix instruction with f32 accumulators adds: steps of so many products, which are exact. Products and
/// accumulator are cut to `bits` bits below the largest exponent among them and added; the sum is cut to f32.
struct TensorSum {
  int products, bits;
};
/// Of all the instructions that kernels use: mma.sync, wmma and wgmma, as `fagen-run conformance` found them.
inline constexpr TensorSum kTensorSum{16, 25};

#ifdef __CUDACC_RTC__
inline long long bitsOfDouble(double value) { return __double_as_longlong(value); }
inline double doubleOfBits(long long bits) { return __longlong_as_double(bits); }
#else
inline long long bitsOfDouble(double value) { return __builtin_bit_cast(long long, value); }
inline double doubleOfBits(long long bits) { return __builtin_bit_cast(double, bits); }
#endif

/// Adds up the steps of one sum. What tensor cores give is at least the exact sum less `below`, at most that and
/// `above`.
class SumLoss {
public:
  explicit SumLoss(DType dtype) : lowestFactor(dtype == DType::F16 ? -14 : -126) {}

  /// The next `count` products a(i) b(i), at most kTensorSum.products; finite values of the dtype as f64.
  template <class A, class B> void addStep(A a, B b, int count) {
    int ofProducts = kLowest;
    for (int i = 0; i < count; ++i)
      if (a(i) != 0 && b(i) != 0)
        ofProducts = larger(ofProducts, exponentOf(a(i), lowestFactor) + exponentOf(b(i), lowestFactor));
    // The last bits that are kept, by the largest and by the smallest accumulator that this one may be.
    const int last = larger(ofProducts, exponentOf(largestSum(), kLowest)) - kTensorSum.bits;
    const int leastLast = larger(ofProducts, exponentOf(smallestSum(), kLowest)) - kTensorSum.bits;
    if (exponentOf(smallestSum(), kLowest) - kFraction < last)
      cut(most() > 0, least() < 0, powerOfTwo(last));
    for (int i = 0; i < count; ++i) {
      const double product = a(i) * b(i), scaled = product * powerOfTwo(-last);
      if (scaled != static_cast<double>(static_cast<long long>(scaled)))
        cut(product > 0, product < 0, powerOfTwo(last));
      sum += product;
    }
    cutResult(powerOfTwo(leastLast));
  }

  /// The largest |what tensor cores give - the exact sum|.
  double bound() const { return below > above ? below : above; }

private:
  static constexpr int kFraction = 23, kLowest = -126; // of f32

  static int larger(int a, int b) { return a > b ? a : b; }
  static double powerOfTwo(int exponent) { return doubleOfBits(static_cast<long long>(exponent + 1023) << 52); }
  static int exponentOf(double x, int lowest) {
    return larger(static_cast<int>(bitsOfDouble(x) >> 52 & 0x7ff) - 1023, lowest);
  }
  double least() const { return sum - below; }
  double most() const { return sum + above; }
  double largestSum() const { return -least() > most() ? -least() : most(); }
  /// Of magnitude; 0 where the sign is not certain.
  double smallestSum() const { return least() > 0 ? least() : most() < 0 ? -most() : 0; }

  /// Less than `unit` is cut, toward zero, from a value that may be positive, negative, or either.
  void cut(bool positive, bool negative, double unit) {
    below += positive ? unit : 0;
    above += negative ? unit : 0;
  }
  /// The sum is a multiple of `kept`, so what it loses is at most f32's last place less that.
  void cutResult(double kept) {
    const double low = least(), high = most();
    const double ofHigh = powerOfTwo(exponentOf(high, kLowest) - kFraction) - kept;
    const double ofLow = powerOfTwo(exponentOf(low, kLowest) - kFraction) - kept;
    below += high > 0 && ofHigh > 0 ? ofHigh : 0;
    above += low < 0 && ofLow > 0 ? ofLow : 0;
  }

  int lowestFactor;
  double sum = 0, below = 0, above = 0;
};

} // namespace fagen::lab
