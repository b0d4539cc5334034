// fagen: exact sums, the ways to add, and the study that tells them apart.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ModelRunner.h"
#include "lab/conformance/exact_sum.h"
#include "lab/kernels/numeric.h"

using namespace fagen::lab;

namespace {

TEST(ExactSum, nothingIsRounded) {
  ExactSum sum;
  sum.add(1, 200);
  sum.add(-3, -266);
  sum.add(0x1.fffffep-120);
  sum.add(-0x1p200);
  sum.add(-0x1.fffffep-120);
  EXPECT_EQ(sum.value(), -3 * 0x1p-266);
  sum.add(3, -266);
  EXPECT_EQ(sum.value(), 0.0);
}

TEST(ExactSum, doublesOfAllBits) {
  ExactSum sum;
  const double value = 0x1.23456789abcdfp-40;
  sum.add(value);
  EXPECT_EQ(sum.value(), value);
  sum.add(-value);
  EXPECT_EQ(sum.value(), 0.0);
}

/// One product of 1 and an accumulator: what is left of the product shows how many bits are kept.
uint32_t onePlus(const Accumulation &way, float c, float product) {
  Dot dot{.factor = Factor::BF16, .half = false, .a = {}, .b = {}, .c = asWord(c)};
  dot.a[0] = bf16OfFloat(product);
  dot.b[0] = bf16OfFloat(1);
  return accumulate(way, dot);
}

TEST(Accumulation, bitsBelowTheLargestExponentAreCut) {
  const Accumulation way{.products = 16, .fraction = 25};
  EXPECT_EQ(onePlus(way, 1, 0x1p-23f), asWord(1 + 0x1p-23f));
  EXPECT_EQ(onePlus(way, 1, 0x1p-24f), asWord(1)); // kept among the terms, cut from the result
  EXPECT_EQ(onePlus(way, 1, -0x1p-25f), asWord(1 - 0x1p-24f));
  EXPECT_EQ(onePlus(way, 1, -0x1p-26f), asWord(1)); // cut before the sum
}

TEST(Accumulation, resultsOverflowToInfinityAndKeepSubnormals) {
  const Accumulation way;
  EXPECT_EQ(onePlus(way, 0x1.fffffep127f, 0x1p127f), 0x7f800000u);
  EXPECT_EQ(onePlus(way, 0x1.fffffep127f, 0x1p102f), asWord(0x1.fffffep127f)); // towards zero
  EXPECT_EQ(onePlus(way, 0x1p-149f, 0x1p-130f), asWord(0x1p-130f + 0x1p-149f));
}

TEST(Accumulation, stepsFollowEachOther) {
  Dot dot{.factor = Factor::F16, .half = false, .a = {}, .b = {}, .c = asWord(-1)};
  dot.a[0] = dot.b[0] = f16OfFloat(1);
  dot.a[8] = f16OfFloat(0x1p-14f);
  dot.b[8] = f16OfFloat(0x1p-14f);
  EXPECT_EQ(accumulate({.products = 16, .fraction = 25}, dot), asWord(0)); // 2^-28 is cut next to 1
  EXPECT_EQ(accumulate({.products = 8, .fraction = 25}, dot), asWord(0x1p-28f));
}

TEST(Accumulation, namesTellThemApart) {
  for (const Accumulation &way : accumulations())
    ASSERT_EQ(findAccumulation(way.name()), &way);
  EXPECT_EQ(findAccumulation("by heart"), nullptr);
}

/// The study finds each published way from results alone, and no other fits.
TEST(ModelStudy, findsThePlantedWay) {
  for (const Accumulation &planted :
       {Accumulation{}, Accumulation{.products = 8, .fraction = 24}, Accumulation{.products = 4, .fraction = 23}}) {
    ModelRunner device(planted);
    const ConformanceReport report = runOn(device, "mma_m16n8k16_f32", 1);
    ASSERT_EQ(report.models.size(), 2u);
    for (const ModelReport &model : report.models) {
      EXPECT_EQ(model.candidates[0].name, planted.name()) << model.name;
      EXPECT_EQ(model.candidates[0].different, 0u) << model.name;
      // Whether zeros count does not show in bf16, where a zero's exponent is below all others.
      const size_t other = model.candidates[1].name == planted.name() + ", zeros count" ? 2 : 1;
      EXPECT_GT(model.candidates[other].different, 0u) << model.name << ": " << model.candidates[other].name;
    }
  }
}

/// Sums of bytes are known to the bit: 13 bits of 32 products, and of the result.
TEST(ModelStudy, bytesAddInOneWay) {
  ModelRunner device(byteAccumulation());
  const ConformanceReport report = runOn(device, "wgmma_f32_e4m3", 1);
  ASSERT_EQ(report.models.size(), 1u);
  EXPECT_EQ(report.models[0].candidates[0].name, byteAccumulation().name());
  EXPECT_GT(report.models[0].candidates[1].different, 0u);
  EXPECT_TRUE(report.cases[0].passed());
  ModelRunner better({.products = 32, .fraction = 14, .result = 14});
  EXPECT_FALSE(runOn(better, "wgmma_f32_e4m3", 1).cases[0].passed());
}

TEST(Accumulation, sumsOfBytesKeepThirteenBits) {
  Dot dot{.factor = Factor::E4M3, .half = false, .a = {}, .b = {}, .c = asWord(16384)};
  dot.a[31] = dot.b[31] = 0x38; // 1
  EXPECT_EQ(accumulate(byteAccumulation(), dot), asWord(16384));
  dot.b[31] = 0x40; // 2
  EXPECT_EQ(accumulate(byteAccumulation(), dot), asWord(16386));
  dot.c = asWord(16387); // of which one is cut
  EXPECT_EQ(accumulate(byteAccumulation(), dot), asWord(16388));
}

/// The bound holds for what it was derived from, and it is not idle: it is nearly reached.
TEST(ModelStudy, boundHoldsForItsModelAndForBetterOnes) {
  for (const Accumulation &way : {Accumulation{}, Accumulation{.ideal = true}}) {
    ModelRunner device(way);
    for (const CaseReport &c : runOn(device, "mma_", 2).cases) {
      if (c.testCase->exact()) // by a way of its own
        continue;
      EXPECT_TRUE(c.passed()) << way.name() << " " << c.testCase->name;
      EXPECT_GT(c.devices[0].maxOfBound, way.ideal ? 0.2 : 0.5) << c.testCase->name;
    }
  }
}

TEST(ModelStudy, boundNoticesAWorseWay) {
  ModelRunner device({.products = 16, .fraction = 20});
  for (const CaseReport &c : runOn(device, "mma_m16n8k16_f32", 1).cases)
    EXPECT_GT(c.devices[0].maxOfBound, 1.0) << c.testCase->name;
}

} // namespace
