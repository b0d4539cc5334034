// fagen: shapes, cases and suites as text and as lists.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/cases/suites.h"

#include <algorithm>
#include <gtest/gtest.h>

using namespace fagen::lab;

namespace {

std::string errorOf(const std::string &text) {
  try {
    parseCase(text);
  } catch (const UserError &error) {
    return error.what();
  }
  return "";
}

TEST(Shape, namesAndNumbers) {
  EXPECT_EQ(parseShape("mission"), (Shape{1, 8, 8, 512, 512, 64, 64}));
  EXPECT_EQ(parseShape("2,6,2,113,203,192,128"), (Shape{2, 6, 2, 113, 203, 192, 128}));
  EXPECT_EQ(formatShape(parseShape("2,6,2,113,203,192,128")), "2,6,2,113,203,192,128");
  EXPECT_EQ(formatShape(parseShape("mission2")), "2,8,8,512,512,64");
}

TEST(Shape, mistakes) {
  EXPECT_NE(errorOf("mision").find("did you mean 'mission'?"), std::string::npos);
  EXPECT_NE(errorOf("1,2,3").find("has 3 numbers"), std::string::npos);
  EXPECT_NE(errorOf("1,6,4,8,8,64").find("hkv = 4 must divide h = 6"), std::string::npos);
  EXPECT_NE(errorOf("1,6,6,8,-8,64").find("sk of shape"), std::string::npos);
  EXPECT_NE(errorOf("1,6,6,8,8x,64").find("'8x'"), std::string::npos);
  EXPECT_NE(errorOf("").find("empty"), std::string::npos);
}

TEST(Shape, sizesThatNothingCounts) {
  EXPECT_NE(errorOf("1,1,1,2147483648,8,64").find("a size is at most 2147483647"), std::string::npos);
  EXPECT_EQ(parseShape("1,1,1,2147483647,8,64").seqQ, 2147483647);
  EXPECT_NE(errorOf("0,65536,1,65536,65536,65537").find("2.81e+14 are possible"), std::string::npos);
  EXPECT_EQ(parseShape("1,65536,1,65536,65536,65536").oElements(), int64_t{1} << 48);
}

TEST(Shape, flopsConvention) {
  EXPECT_EQ(flops({2, 3, 3, 10, 20, 64, 64}, Mask::None), 4.0 * 2 * 3 * 10 * 20 * 64);
  EXPECT_EQ(flops({2, 3, 3, 10, 20, 192, 128}, Mask::Causal), 2.0 * 2 * 3 * 10 * 20 * 320 / 2);
}

TEST(Shape, causalIsAlignedBottomRight) {
  Shape square{1, 1, 1, 4, 4, 8, 8}, tall{1, 1, 1, 5, 2, 8, 8}, wide{1, 1, 1, 2, 5, 8, 8};
  EXPECT_EQ(visibleKeys(square, Mask::Causal, 0), 1);
  EXPECT_EQ(visibleKeys(square, Mask::Causal, 3), 4);
  EXPECT_EQ(visibleKeys(tall, Mask::Causal, 2), 0);
  EXPECT_EQ(visibleKeys(tall, Mask::Causal, 3), 1);
  EXPECT_EQ(visibleKeys(wide, Mask::Causal, 0), 4);
  EXPECT_EQ(visibleKeys(tall, Mask::None, 0), 2);
}

TEST(Case, textOfEverySuiteCaseComesBack) {
  ProblemGroup group{DType::BF16, Mask::Causal, 192, 128, {{128, 64}, {16, 128}}};
  for (const std::string &suite : suiteNames())
    for (const Case &c : suiteCases(suite, group))
      EXPECT_EQ(parseCase(formatCase(c)), c) << formatCase(c);
}

TEST(Case, mistakes) {
  EXPECT_NE(errorOf("mission layot=bhsd").find("unknown setting 'layot=bhsd'"), std::string::npos);
  EXPECT_NE(errorOf("mission layout=x").find("known: bhsd, bshd, padded, odd, offset, junk, shared, one_row, far"),
            std::string::npos);
  EXPECT_NE(errorOf("mission scale=-1").find("from 0 up"), std::string::npos);
  EXPECT_NE(errorOf("mission causal").find("not key=value"), std::string::npos);
}

TEST(Suite, nobodyIsAskedForLseWhoWritesNone) {
  ProblemGroup group{DType::F16, Mask::None, 64, 64, {{128, 64}}, false};
  for (const std::string &suite : suiteNames())
    for (const Case &c : suiteCases(suite, group))
      EXPECT_FALSE(c.lse) << formatCase(c);
}

TEST(Suite, fullHoldsWhatItPromises) {
  ProblemGroup group{DType::F16, Mask::None, 64, 64, {{128, 64}}};
  std::vector<Case> full = suiteCases("full", group);
  auto count = [&](auto predicate) { return std::count_if(full.begin(), full.end(), predicate); };
  EXPECT_EQ(suiteCases("fa3", group).size(), 60u); // 20 pairs, three ways to share heads
  EXPECT_EQ(count([](const Case &c) { return c.shape.seqQ == 4224 && c.shape.batch == 2; }), 3);
  for (int64_t q : {127, 128, 129})
    for (int64_t kv : {63, 64, 65})
      EXPECT_EQ(count([&](const Case &c) { return c.shape.seqQ == q && c.shape.seqKv == kv; }), 1);
  for (Layout layout : {Layout::Bshd, Layout::Padded, Layout::Odd, Layout::Offset, Layout::Junk, Layout::Shared,
                        Layout::OneRow, Layout::Far})
    EXPECT_GE(count([&](const Case &c) { return c.layout == layout; }), 1);
  EXPECT_GE(count([](const Case &c) { return c.shape.seqKv == 0; }), 1);
  EXPECT_GE(count([](const Case &c) { return c.shape.seqQ == 0; }), 1);
  EXPECT_GE(count([](const Case &c) { return !c.lse; }), 1);
  EXPECT_GE(count([](const Case &c) { return c.scale && *c.scale == 0; }), 1);
  EXPECT_THROW(suiteCases("fulll", group), UserError);
}

} // namespace
