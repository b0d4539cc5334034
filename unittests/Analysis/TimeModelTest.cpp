// fagen: the maths of the time model, by hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/TimeModel.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace fagen;
using namespace fagen::model;

namespace {

TEST(TimeModelTest, ReadsShapes) {
  std::optional<model::Shape> shape = parseShape("2,32,8,512,1024,64");
  ASSERT_TRUE(shape);
  EXPECT_EQ(shape->kvHeads, 8);
  EXPECT_EQ(shape->seqKv, 1024);
  EXPECT_EQ(shape->str(), "2,32,8,512,1024,64");
  for (const char *wrong :
       {"", "1,2,3", "1,2,3,4,5,6,7", "1,2,3,4,5,x", "0,1,1,1,1,64", "1,1,1,1,-1,64", "1048577,1,1,1,1,64"})
    EXPECT_FALSE(parseShape(wrong)) << wrong;
}

TEST(TimeModelTest, EveryTargetHasAGpu) {
  for (const TargetInfo &target : allTargets())
    EXPECT_NE(ratesOf(target.sm), nullptr) << target.name.str();
  EXPECT_EQ(ratesOf(70), nullptr);
}

TEST(TimeModelTest, WorkOverRates) {
  GpuRates gpu{};
  gpu.mmaSyncFlops = 1024;
  gpu.mmaSyncF16Flops = 2048;
  gpu.exps = 16;
  gpu.fp32 = 128;
  gpu.halfRate = 64;
  gpu.sharedBytes = 128;
  Work work;
  work.tensorFlops = 9 * 1024;
  work.tensorF16Flops = 2048;
  work.exps = 64;
  work.fp32 = 256;
  work.halfRate = 192;
  work.wavefronts = 7;
  work.copiedWavefronts = 10;
  work.storedBytes = 32;
  const Clocks clocks = clocksOf(work, gpu);
  EXPECT_EQ(clocks.tensor, 10);
  EXPECT_EQ(clocks.exp, 4);
  EXPECT_EQ(clocks.fp32, 2 + 3);
  EXPECT_EQ(clocks.shared, 7);
  EXPECT_DOUBLE_EQ(clocks.copy, 10 * 0.48);
  EXPECT_EQ(clocks.latency, 0);
  EXPECT_STREQ(clocks.limit(), "tensor");
}

/// A norm of exponent 1.7: more than the longest, less than all one after the other; a CTA more adds all of it.
TEST(TimeModelTest, HidesPartOfTheOtherUnits) {
  Clocks clocks;
  clocks.shared = clocks.copy = 100;
  EXPECT_NEAR(together(clocks, 1, 4), 100 * std::pow(2, 1 / 1.7), 1e-9);
  EXPECT_NEAR(together(clocks, 3, 4), 300 * std::pow(2, 1 / 1.7), 1e-9);
  clocks.copy = 0;
  EXPECT_NEAR(together(clocks, 1, 4), 100, 1e-9);
}

TEST(TimeModelTest, OtherCtasFillLatency) {
  Clocks clocks;
  clocks.latency = 600;
  EXPECT_NEAR(together(clocks, 1, 4), 600, 1e-9);
  EXPECT_NEAR(together(clocks, 3, 4), 600, 1e-9);
  clocks.shared = 600;
  EXPECT_LT(together(clocks, 3, 4), 3 * together(clocks, 1, 4));
}

/// A CTA of two warps has two of the four schedulers: its own products need twice the clocks of the SM's rate.
TEST(TimeModelTest, FewWarpsLeaveSchedulersIdle) {
  Clocks clocks;
  clocks.tensor = 100;
  EXPECT_NEAR(together(clocks, 1, 4), 100 * std::pow(2, 1 / 2.75), 1e-9);
  EXPECT_NEAR(together(clocks, 1, 2), 100 * std::pow(1 + std::pow(2, 2.75), 1 / 2.75), 1e-9);
  EXPECT_LT(together(clocks, 8, 2), 1.01 * 800); // there are warps enough, and throughput counts
}

/// The tensor cores, or the shared memory that they read operands from; and the copy engine.
TEST(TimeModelTest, ProductsThatAreAskedFor) {
  GpuRates gpu{};
  gpu.tensorFlops = 4096;
  gpu.mmaSyncFlops = gpu.mmaSyncF16Flops = gpu.exps = gpu.fp32 = gpu.halfRate = 1;
  gpu.sharedBytes = 128;
  gpu.bulkBytes = 64;
  Work work;
  work.askedFlops = 512 * 4096;
  work.askedWavefronts = 300;
  work.bulkBytes = 6400;
  EXPECT_EQ(clocksOf(work, gpu).products, 512);
  EXPECT_EQ(clocksOf(work, gpu).bulk, 100);
  EXPECT_EQ(clocksOf(work, gpu).tensor, 0);
  work.askedWavefronts = 600;
  EXPECT_EQ(clocksOf(work, gpu).products, 600);
}

/// What runs alongside such products is hidden by a norm of exponent 4, or where groups take turns 8; instructions of
/// warps hardly hide each other.
TEST(TimeModelTest, ProductsHideWhatRunsBesideThem) {
  Clocks clocks;
  clocks.products = 2000;
  clocks.exp = 1000;
  const double unit = std::pow(2000, 4) + std::pow(1000, 4), alone = std::pow(500, 4); // two warps share a scheduler
  EXPECT_NEAR(together(clocks, 1, 8), std::pow(unit + alone, 0.25), 1e-9);
  EXPECT_NEAR(together(clocks, 2, 8), std::pow(16 * unit + alone, 0.25), 1e-9);
  EXPECT_LT(together(clocks, 1, 8, /*inTurns=*/true), 1.001 * 2000);
  EXPECT_LT(together(clocks, 1, 8, /*inTurns=*/true), together(clocks, 1, 8));
  clocks.exp = clocks.fp32 = 1000;
  const double units = 1000 * std::pow(2, 1 / 1.2);
  EXPECT_NEAR(together(clocks, 1, 8, true), std::pow(std::pow(2000, 8) + std::pow(units, 8) + std::pow(1000, 8), 0.125),
              1e-9);
  Clocks without = clocks;
  without.products = 0;
  EXPECT_LT(together(without, 1, 8), together(clocks, 1, 8));
}

TEST(TimeModelTest, PrunesByRecordOnly) {
  GpuRates gpu{};
  EXPECT_FALSE(rankingOf(gpu, /*isCausal=*/false).mayPrune());
  gpu.unmaskedRank = 70;
  gpu.unmaskedVariants = 200;
  EXPECT_TRUE(rankingOf(gpu, false).mayPrune());
  EXPECT_FALSE(rankingOf(gpu, true).mayPrune());
  gpu.unmaskedVariants = 199;
  EXPECT_FALSE(rankingOf(gpu, false).mayPrune());
  gpu.unmaskedVariants = 200;
  gpu.unmaskedRank = 69;
  EXPECT_FALSE(rankingOf(gpu, false).mayPrune());
}

} // namespace
