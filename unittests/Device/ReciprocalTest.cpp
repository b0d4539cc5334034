// fagen: division by a reciprocal that a launch's recipe makes gives what division gives.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fagen/device/reciprocal.h>
#include <fagen/device/tile/integer.h>

#include <gtest/gtest.h>

#include <climits>
#include <iostream>
#include <random>

using namespace fagen::device;

namespace {

/// As a recipe computes it: [2^62, d, floor_div, 1, add].
Reciprocal reciprocalOf(long long d) { return {(1ll << 62) / d + 1}; }

void expectSame(int a, int d) {
  const Reciprocal by = reciprocalOf(d);
  ASSERT_EQ(floor_div(a, by), a / d) << a << " / " << d;
  ASSERT_EQ(rest_of(a, d, by), a % d) << a << " % " << d;
}

/// The excess over a / d grows with a, so it shows first at the largest a that has the largest remainder.
void expectExactBy(int d) {
  for (int a : {0, 1, d - 1, INT_MAX / d * d - 1, INT_MAX / d * d, INT_MAX - 1, INT_MAX})
    expectSame(a < 0 ? 0 : a, d);
  // The proof of reciprocal.h: m d - 2^62 is above 0 and no more than d.
  const auto excess = static_cast<__int128>(reciprocalOf(d).scaled) * d - (static_cast<__int128>(1) << 62);
  ASSERT_GT(excess, 0) << d;
  ASSERT_LE(excess, d) << d;
}

TEST(Reciprocal, SmallNumbers) {
  for (int d = 1; d <= 300; ++d)
    for (int a = 0; a <= 3000; ++a)
      expectSame(a, d);
}

TEST(Reciprocal, LargestRemainders) {
  for (int d = 1; d < 1 << 17; ++d)
    expectExactBy(d);
  for (int shift = 1; shift < 31; ++shift)
    for (int more : {-2, -1, 0, 1, 2})
      if (const int d = (1 << shift) + more; d > 0)
        expectExactBy(d);
  for (int less = 0; less < 1000; ++less)
    expectExactBy(INT_MAX - less);
}

TEST(Reciprocal, RandomNumbers) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200000; ++i) {
    const int d = static_cast<int>(random() % INT_MAX >> random() % 31) + 1;
    expectExactBy(d);
    expectSame(static_cast<int>(random() % (1u << 31)), d);
  }
}

/// Products of sizes: no int holds such a divisor.
TEST(Reciprocal, BeyondInt) {
  for (long long d : {1ll << 31, (1ll << 31) + 1, 1ll << 40, 1000000000000000000ll})
    for (int a : {0, 1, 1 << 30, INT_MAX})
      ASSERT_EQ(floor_div(a, reciprocalOf(d)), 0) << a << " / " << d;
}

/// Down, not towards 0.
TEST(Reciprocal, NegativeNumbers) {
  for (int d : {1, 2, 3, 7, 64, 100, INT_MAX})
    for (int a : {INT_MIN, INT_MIN + 1, -1000, -65, -64, -63, -7, -3, -2, -1, 0, 1, 63, 64, INT_MAX}) {
      const long long quotient = (static_cast<long long>(a) - (a < 0 ? d - 1 : 0)) / d;
      ASSERT_EQ(signed_floor_div(a, reciprocalOf(d)), quotient) << a << " / " << d;
      ASSERT_EQ(floor_mod(a, d, reciprocalOf(d)), a - quotient * d) << a << " mod " << d;
    }
}

TEST(Reciprocal, RoundedUp) {
  for (int d = 1; d <= 300; ++d)
    for (int a = 0; a <= 3000; ++a)
      ASSERT_EQ(ceil_div(a, d, reciprocalOf(d)), (a + d - 1) / d) << a << " / " << d;
}

} // namespace
