// fagen: division by multiplication gives what division gives.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/divisor.h>
#include <fagen/device/tile/integer.h>

#include <gtest/gtest.h>

#include <climits>
#include <iostream>
#include <random>

using namespace fagen::device;

namespace {

void expectQuotient(int a, int d) { ASSERT_EQ(floor_div(a, make_divisor(d)), a / d) << a << " / " << d; }

/// The excess over a / d grows with a, so it shows first at the largest a that has the largest remainder.
void expectExact(int d) {
  for (int a : {0, 1, d - 1, INT_MAX / d * d - 1, INT_MAX / d * d, INT_MAX - 1, INT_MAX})
    expectQuotient(a < 0 ? 0 : a, d);
  // The proof of divisor.h: m d - 2^(31 + shift) is not negative and below 2^shift.
  const Divisor divisor = make_divisor(d);
  const auto excess =
      static_cast<__int128>(divisor.multiplier) * d - (static_cast<__int128>(1) << (31 + divisor.shift));
  ASSERT_GE(excess, 0) << d;
  ASSERT_LT(excess, static_cast<__int128>(1) << divisor.shift) << d;
}

TEST(Divisor, SmallNumbers) {
  for (int d = 1; d <= 300; ++d)
    for (int a = 0; a <= 3000; ++a)
      expectQuotient(a, d);
}

TEST(Divisor, LargestRemainders) {
  for (int d = 1; d < 1 << 18; ++d)
    expectExact(d);
  for (int shift = 1; shift < 31; ++shift)
    for (int more : {-2, -1, 0, 1, 2})
      if (const int d = (1 << shift) + more; d > 0)
        expectExact(d);
  for (int less = 0; less < 1000; ++less)
    expectExact(INT_MAX - less);
}

TEST(Divisor, RandomNumbers) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200000; ++i) {
    const int d = static_cast<int>(random() % INT_MAX >> random() % 31) + 1;
    expectExact(d);
    expectQuotient(static_cast<int>(random() % (1u << 31)), d);
  }
}

/// Down, not towards 0.
TEST(Divisor, NegativeNumbers) {
  for (int d : {1, 2, 3, 7, 64, 100, INT_MAX})
    for (int a : {INT_MIN, INT_MIN + 1, -1000, -65, -64, -63, -7, -3, -2, -1, 0, 1, 63, 64, INT_MAX}) {
      const long long quotient = (static_cast<long long>(a) - (a < 0 ? d - 1 : 0)) / d;
      ASSERT_EQ(signed_floor_div(a, make_divisor(d)), quotient) << a << " / " << d;
      ASSERT_EQ(signed_floor_div(a, d), quotient) << a << " / " << d;
      ASSERT_EQ(signed_ceil_div(a, d), quotient + (a - quotient * d != 0)) << a << " / " << d;
      ASSERT_EQ(floor_mod(a, d, make_divisor(d)), a - quotient * d) << a << " mod " << d;
    }
}

} // namespace
