// fagen: numbers of a normal distribution: as many below a bound as there should be, on a grid, the same for a seed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/support/random.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <vector>

namespace fagen::lab::randomTest {

std::vector<float> draw(uint64_t seed, size_t blocks) {
  const NormalStream normals(seed, 3);
  std::vector<float> values;
  for (size_t i = 0; i < blocks; ++i)
    for (const float value : normals.block(i))
      values.push_back(value);
  return values;
}

TEST(NormalStream, SharesBelowBounds) {
  const std::vector<float> values = draw(7, 1 << 17);
  const double count = static_cast<double>(values.size());
  for (double bound = -4; bound <= 4; bound += 0.25) {
    const double share = 0.5 * std::erfc(-bound / std::sqrt(2.0));
    double below = 0;
    for (const float value : values)
      below += static_cast<double>(value) < bound;
    // Six standard deviations, and what a table of 65536 quantiles and its grid leave.
    EXPECT_NEAR(below / count, share, 6 * std::sqrt(share * (1 - share) / count) + 1.0 / 65536 + 1.0 / 32768) << bound;
  }
}

TEST(NormalStream, MultiplesOfItsGrid) {
  float most = 0;
  for (const float value : draw(8, 1 << 14)) {
    EXPECT_EQ(value * 16384, std::round(value * 16384));
    most = std::max(most, std::abs(value));
  }
  EXPECT_GT(most, 3.5F);
  EXPECT_LT(most, 4.33F); // the outermost quantile
}

TEST(NormalStream, OfASeed) {
  EXPECT_EQ(draw(9, 4), draw(9, 4));
  EXPECT_NE(draw(9, 4), draw(10, 4));
}

} // namespace fagen::lab::randomTest
