// fagen: exact division by a number that a launch knows, among a program's parameters; shared by kernels and emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// m = 2^62 / d, rounded down, plus 1: an integer expression, so that a table's recipe and a plan make it as they make
// sizes. m d = 2^62 + e with 0 < e <= d. Then a m / 2^62 = a / d + a e / (d 2^62): for 0 <= a < 2^31 and d < 2^31 that
// exceeds a / d by less than 1 / d, which rounding down takes away again. Of larger d the quotient is 0, as it should.
#pragma once

namespace fagen::device {

/// Divides by an integer of 1 or more.
struct Reciprocal {
  long long scaled; ///< m
};

/// a / b rounded down, of the reciprocal of b; a is not negative.
constexpr int floor_div(int a, const Reciprocal &by_b) {
  const unsigned long long number = static_cast<unsigned>(a), m = static_cast<unsigned long long>(by_b.scaled);
  const unsigned long long high = number * (m >> 32), low = number * static_cast<unsigned>(m);
  return static_cast<int>((high + (low >> 32)) >> 30); // high: below 2^31 times at most 2^30
}

/// a / b rounded up; a is not negative, and a + b - 1 an int.
constexpr int ceil_div(int a, int b, const Reciprocal &by_b) { return floor_div(a + b - 1, by_b); }

/// a % b; a is not negative.
constexpr int rest_of(int a, int b, const Reciprocal &by_b) { return a - floor_div(a, by_b) * b; }

/// a / b rounded down, of any a.
constexpr int signed_floor_div(int a, const Reciprocal &by_b) {
  return a >= 0 ? floor_div(a, by_b) : ~floor_div(~a, by_b);
}

/// What signed_floor_div leaves, from 0 to b - 1.
constexpr int floor_mod(int a, int b, const Reciprocal &by_b) { return a - signed_floor_div(a, by_b) * b; }

} // namespace fagen::device
