// fagen: the 16-bit formats, over every value they have.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/kernels/numeric.h"
#include "lab/support/random.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace fagen::lab;

namespace {

/// Every pattern that is not a NaN comes back from f32 as itself; a NaN stays one.
TEST(Numeric, everyValueRoundTrips) {
  for (DType dtype : {DType::F16, DType::BF16})
    for (unsigned bits = 0; bits < 65536; ++bits) {
      float value = floatOfHalf(dtype, static_cast<unsigned short>(bits));
      unsigned short back = halfOfFloat(dtype, value);
      if (std::isnan(value))
        EXPECT_TRUE(std::isnan(floatOfHalf(dtype, back)));
      else
        EXPECT_EQ(back, bits);
    }
}

/// Values that anyone can work out from the formats.
TEST(Numeric, knownValues) {
  EXPECT_EQ(floatOfF16(0x3c00), 1.0f);
  EXPECT_EQ(floatOfF16(0xc000), -2.0f);
  EXPECT_EQ(floatOfF16(0x7bff), 65504.0f);
  EXPECT_EQ(floatOfF16(0x0001), std::ldexp(1.0f, -24));
  EXPECT_EQ(floatOfF16(0x0400), std::ldexp(1.0f, -14));
  EXPECT_TRUE(std::isinf(floatOfF16(0x7c00)));
  EXPECT_TRUE(std::signbit(floatOfF16(0x8000)));
  EXPECT_EQ(floatOfBF16(0x3f80), 1.0f);
  EXPECT_EQ(floatOfBF16(0x7f7f), std::ldexp(255.0f / 128, 127));
}

/// Each half of the gap between neighbours rounds to the nearer one, the middle to the even one.
TEST(Numeric, roundsToNearestEven) {
  for (DType dtype : {DType::F16, DType::BF16}) {
    unsigned last = dtype == DType::F16 ? 0x7bff : 0x7f7f;
    for (unsigned bits = 0; bits < last; ++bits) {
      float low = floatOfHalf(dtype, static_cast<unsigned short>(bits));
      float high = floatOfHalf(dtype, static_cast<unsigned short>(bits + 1));
      float middle = low / 2 + high / 2;
      EXPECT_EQ(halfOfFloat(dtype, middle), bits % 2 == 0 ? bits : bits + 1);
      EXPECT_EQ(halfOfFloat(dtype, std::nextafter(middle, low)), bits);
      EXPECT_EQ(halfOfFloat(dtype, std::nextafter(middle, high)), bits + 1);
      EXPECT_EQ(halfOfFloat(dtype, -std::nextafter(middle, high)), (bits + 1) | 0x8000);
    }
  }
}

TEST(Numeric, overflowsToInfinity) {
  EXPECT_EQ(f16OfFloat(65519.996f), 0x7bff);
  EXPECT_EQ(f16OfFloat(65520.0f), 0x7c00);
  EXPECT_EQ(f16OfFloat(-1e30f), 0xfc00);
  EXPECT_EQ(bf16OfFloat(3.4e38f), 0x7f80);
}

/// The known-answer vectors of Philox4x32-10 that its authors publish (Random123, kat_vectors).
TEST(Random, philoxKnownAnswers) {
  using Words = std::array<uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, ~uint64_t{0}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0x299f31d0a4093822),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, normalMoments) {
  NormalStream stream(7, 0);
  double sum = 0, squares = 0, fourth = 0;
  constexpr int kCount = 400000;
  for (int i = 0; i < kCount / 8; ++i)
    for (float x : stream.block(i)) {
      sum += x;
      squares += x * x;
      fourth += static_cast<double>(x) * x * x * x;
    }
  EXPECT_NEAR(sum / kCount, 0, 0.006);
  EXPECT_NEAR(squares / kCount, 1, 0.01);
  EXPECT_NEAR(fourth / kCount, 3, 0.1);
}

TEST(Random, sameSeedSameValues) {
  EXPECT_EQ(NormalStream(3, 1).at(12345), NormalStream(3, 1).block(12345 / 8)[12345 % 8]);
  EXPECT_NE(NormalStream(3, 1).block(0), NormalStream(3, 2).block(0));
  EXPECT_NE(NormalStream(3, 1).block(0), NormalStream(4, 1).block(0));
}

} // namespace
