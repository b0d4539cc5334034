// fagen: the maths of the time model, by hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/TimeModel.h"

#include <gtest/gtest.h>

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
  gpu.exps = 16;
  gpu.fp32 = 128;
  gpu.halfRate = 64;
  gpu.sharedBytes = 128;
  gpu.l2Bytes = 32;
  Work work;
  work.tensorFlops = 10240;
  work.exps = 64;
  work.fp32 = 256;
  work.halfRate = 192;
  work.wavefronts = 7;
  work.copiedBytes = 64;
  work.storedBytes = 32;
  const Clocks clocks = clocksOf(work, gpu);
  EXPECT_EQ(clocks.tensor, 10);
  EXPECT_EQ(clocks.exp, 4);
  EXPECT_EQ(clocks.fp32, 2 + 3);
  EXPECT_EQ(clocks.shared, 7);
  EXPECT_EQ(clocks.l2, 3);
  EXPECT_EQ(clocks.latency, 0);
  EXPECT_STREQ(clocks.limit(), "tensor");
}

/// 100 of the busiest unit and 0.42 of the 100 of the others.
TEST(TimeModelTest, HidesPartOfTheOtherUnits) {
  Clocks clocks;
  clocks.tensor = 100;
  clocks.exp = 60;
  clocks.shared = 40;
  EXPECT_DOUBLE_EQ(together(clocks, 1, 4), 142);
  EXPECT_DOUBLE_EQ(together(clocks, 2, 4), 284);
}

TEST(TimeModelTest, OtherCtasFillLatency) {
  Clocks clocks;
  clocks.latency = 600;
  EXPECT_DOUBLE_EQ(together(clocks, 1, 4), 600);
  EXPECT_DOUBLE_EQ(together(clocks, 3, 4), 200);
}

/// Two warps keep two of four schedulers busy: their units need twice the clocks; shared memory belongs to all.
TEST(TimeModelTest, FewWarpsLeaveSchedulersIdle) {
  Clocks clocks;
  clocks.tensor = 100;
  EXPECT_DOUBLE_EQ(together(clocks, 1, 2), 200);
  EXPECT_DOUBLE_EQ(together(clocks, 2, 2), 200);
  clocks.tensor = 0;
  clocks.shared = 100;
  EXPECT_DOUBLE_EQ(together(clocks, 1, 2), 100);
}

/// Bytes in flight bound a step, and add nothing to what warps do.
TEST(TimeModelTest, CopiesOnlyBound) {
  Clocks clocks;
  clocks.tensor = 100;
  clocks.l2 = 90;
  EXPECT_DOUBLE_EQ(together(clocks, 1, 4), 100);
  clocks.l2 = 130;
  EXPECT_DOUBLE_EQ(together(clocks, 1, 4), 130);
}

} // namespace
