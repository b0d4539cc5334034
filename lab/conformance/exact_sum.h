// fagen: sums of floats without any rounding.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace fagen::lab {

/// A fixed-point number with bits from 2^-352 to 2^320, wide enough for sums of f32 and of products of two bf16.
class ExactSum {
public:
  /// Adds significand * 2^exponent; |significand| < 2^48, exponent from -320 to 260.
  void add(int64_t significand, int exponent) {
    const int place = exponent + kBias;
    const uint64_t magnitude = static_cast<uint64_t>(significand < 0 ? -significand : significand);
    const unsigned __int128 wide = static_cast<unsigned __int128>(magnitude) << place % 32;
    for (int i = 0; i < 3; ++i) {
      const auto digit = static_cast<int64_t>(static_cast<uint32_t>(wide >> 32 * i));
      limbs[static_cast<size_t>(place / 32 + i)] += significand < 0 ? -digit : digit;
    }
  }
  /// A finite f32 or f64 value.
  void add(double value) {
    int exponent;
    const double fraction = std::frexp(value, &exponent); // 24 bits in the upper half, the others in the lower
    const double upper = std::trunc(std::ldexp(fraction, 26));
    add(static_cast<int64_t>(upper), exponent - 26);
    add(static_cast<int64_t>(std::ldexp(fraction, 26 + 27) - std::ldexp(upper, 27)), exponent - 53);
  }

  /// The sum, rounded to a double (an error of the last place may remain).
  double value() const {
    std::array<int64_t, kLimbs> digits = limbs;
    const bool negative = carry(digits) < 0;
    if (negative) {
      for (int64_t &digit : digits)
        digit = -digit;
      carry(digits);
    }
    double sum = 0;
    for (size_t i = kLimbs; i-- > 0;)
      sum += std::ldexp(static_cast<double>(digits[i]), 32 * static_cast<int>(i) - kBias);
    return negative ? -sum : sum;
  }

private:
  static constexpr int kBias = 352;
  static constexpr size_t kLimbs = 22;

  /// Makes all digits but the last 0 to 2^32 - 1; the last tells the sign.
  static int64_t carry(std::array<int64_t, kLimbs> &digits) {
    for (size_t i = 0; i + 1 < kLimbs; ++i) {
      digits[i + 1] += digits[i] >> 32;
      digits[i] &= 0xffffffff;
    }
    return digits[kLimbs - 1];
  }

  std::array<int64_t, kLimbs> limbs{}; ///< limb i counts 2^(32 i - kBias)
};

} // namespace fagen::lab
