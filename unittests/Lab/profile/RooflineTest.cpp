// fagen: the least work of a problem, and a GPU's least time for it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/profile/roofline.h"

#include <gtest/gtest.h>

using namespace fagen::lab;

namespace {

TEST(Roofline, workOfAPlainProblem) {
  LeastWork work = leastWork(parseShape("2,8,8,100,300,64"), Mask::None, false);
  EXPECT_EQ(work.exps, 2 * 8 * 100 * 300);
  EXPECT_EQ(work.flops, work.exps * 4 * 64);
  EXPECT_EQ(work.flops, flops(parseShape("2,8,8,100,300,64"), Mask::None));
  EXPECT_EQ(work.bytes, 2.0 * 2 * 8 * 64 * (100 + 100 + 300 + 300));
}

TEST(Roofline, causalCountsTheVisiblePairsExactly) {
  LeastWork work = leastWork(parseShape("1,1,1,512,512,64"), Mask::Causal, false);
  EXPECT_EQ(work.exps, 512 * 513 / 2);
  // The last rows see all keys; with more keys than rows the first ones see many too.
  EXPECT_EQ(leastWork(parseShape("1,1,1,2,10,16"), Mask::Causal, false).exps, 9 + 10);
  // Keys after the last row's are never read.
  LeastWork few = leastWork(parseShape("1,1,1,10,4,16"), Mask::Causal, false);
  EXPECT_EQ(few.exps, 1 + 2 + 3 + 4);
  EXPECT_EQ(few.bytes, 2 * (16 + 16) * (10 + 4));
}

TEST(Roofline, sharedHeadsOtherDimensionsAndLse) {
  LeastWork work = leastWork(parseShape("1,8,2,100,300,64,32"), Mask::None, true);
  EXPECT_EQ(work.flops, 2.0 * 8 * 100 * 300 * (64 + 32));
  EXPECT_EQ(work.bytes, 2.0 * (64 + 32) * (8 * 100 + 2 * 300) + 4.0 * 8 * 100);
}

TEST(Roofline, nothingToDo) {
  LeastWork work = leastWork(parseShape("1,1,1,4,0,16"), Mask::None, false);
  EXPECT_EQ(work.exps, 0);
  EXPECT_EQ(work.bytes, 2 * 16 * 2 * 4);
}

/// 132 SMs of 4096 flops a clock, at 1.8 GHz: 973 TFLOP/s.
TEST(Roofline, peaksOfAnH200) {
  Peaks peaks = peaksOf(90, 132, 1.8e9, 4.9e12);
  EXPECT_NEAR(peaks.tensorFlops, 973e12, 1e12);
  EXPECT_NEAR(peaks.exps, 132 * 16 * 1.8e9, 1);
  EXPECT_EQ(peaks.dramBytes, 4.9e12);
}

TEST(Roofline, theSlowestUnitSetsTheFloor) {
  Peaks peaks{100e12, 1e12, 1e12};
  Roofline line = rooflineOf({1e9, 1e6, 1e6}, peaks);
  EXPECT_DOUBLE_EQ(line.tensorMicroseconds, 10);
  EXPECT_DOUBLE_EQ(line.expMicroseconds, 1);
  EXPECT_DOUBLE_EQ(line.dramMicroseconds, 1);
  EXPECT_DOUBLE_EQ(line.floorMicroseconds(), 10);
  EXPECT_EQ(line.limit(), "tensor");
  EXPECT_EQ(rooflineOf({1e8, 2e6, 1e6}, peaks).limit(), "exp");
  EXPECT_EQ(rooflineOf({1e8, 1e6, 2e6}, peaks).limit(), "dram");
}

/// As long as the products at d 64, half of them at d 128.
TEST(Roofline, expAndProductsOnHopper) {
  auto line = [](const char *shape) {
    return rooflineOf(leastWork(parseShape(shape), Mask::None, false), peaksOf(90, 132, 1.8e9, 4.9e12));
  };
  Roofline d64 = line("1,32,32,16384,16384,64"), d128 = line("1,16,16,16384,16384,128");
  EXPECT_NEAR(d64.expMicroseconds / d64.tensorMicroseconds, 1, 1e-9);
  EXPECT_NEAR(d128.expMicroseconds / d128.tensorMicroseconds, 0.5, 1e-9);
}

TEST(Roofline, unknownGpusHaveTheDramFloorOnly) {
  Roofline line = rooflineOf({1e9, 1e6, 1e6}, peaksOf(75, 40, 1.5e9, 1e12));
  EXPECT_EQ(line.tensorMicroseconds, 0);
  EXPECT_EQ(line.limit(), "dram");
  EXPECT_EQ(rooflineOf({1e9, 1e6, 1e6}, Peaks{}).limit(), "");
}

} // namespace
