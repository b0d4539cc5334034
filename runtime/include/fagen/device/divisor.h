// fagen: exact division by a number that is known before the launch; shared by host runtime, kernels and emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// With 2^(shift - 1) < d <= 2^shift, the multiplier m is 2^(31 + shift) / d rounded up: m d = 2^(31 + shift) + e with
// 0 <= e < 2^shift, and m < 2^32. Then a m / 2^(31 + shift) = a / d + a e / (d 2^(31 + shift)): for 0 <= a < 2^31 that
// exceeds a / d by less than 1 / d, which rounding down takes away again (Granlund and Montgomery, 1994).
#pragma once

namespace fagen::device {

/// Divides by an int of 1 or more.
struct Divisor {
  unsigned multiplier;
  unsigned shift;
};

constexpr Divisor make_divisor(int divisor) {
  const unsigned long long d = static_cast<unsigned>(divisor);
  unsigned shift = 0;
  while ((1ull << shift) < d)
    ++shift;
  return {static_cast<unsigned>(((1ull << (31 + shift)) + d - 1) / d), shift};
}

/// a / divisor rounded down; a is not negative.
constexpr int floor_div(int a, const Divisor &divisor) {
  const unsigned long long product = 2ull * static_cast<unsigned>(a) * divisor.multiplier;
  return static_cast<int>(static_cast<unsigned>(product >> 32) >> divisor.shift);
}

/// The same of any a.
constexpr int signed_floor_div(int a, const Divisor &divisor) {
  return a >= 0 ? floor_div(a, divisor) : ~floor_div(~a, divisor);
}

/// What signed_floor_div leaves, from 0 to b - 1, given b and its reciprocal.
constexpr int floor_mod(int a, int b, const Divisor &by_b) { return a - signed_floor_div(a, by_b) * b; }

} // namespace fagen::device
