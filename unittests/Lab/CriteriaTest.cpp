// fagen: each criterion passes a good result and catches its own planted mistake.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "criteria.h"
#include "placement.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace fagen::lab;

namespace {

/// The plain result of a small causal case: right by definition.
class Judge : public testing::Test {
protected:
  Judge() : c(parseCase("1,2,1,20,17,16 mask=causal")), reference(CpuReference().compute(c, makeInputs(c, 1))) {
    o = reference.plain;
    for (double value : reference.lse)
      lse.push_back(bitsOfFloat(static_cast<float>(value)));
  }
  /// The criteria that fail.
  std::vector<std::string> failing() {
    std::vector<std::string> names;
    for (const Failure &failure : judge(c, reference, o, &lse).failures)
      names.push_back(failure.criterion);
    return names;
  }
  using Names = std::vector<std::string>;

  Case c;
  Reference reference;
  std::vector<uint16_t> o;
  std::vector<uint32_t> lse;
};

TEST_F(Judge, passesThePlainResult) {
  EXPECT_EQ(failing(), Names{});
  Measured measured = judge(c, reference, o, &lse);
  EXPECT_EQ(measured.maxError, reference.maxPlainError);
  EXPECT_GT(measured.bound, 2 * reference.maxPlainError);
}

/// Products that accumulate in f16: their own plain result passes, and would not where they accumulate in f32.
TEST_F(Judge, halfAccumulatorsAreJudgedByWhatTheyExplain) {
  Case half = c;
  half.halfAccum = true;
  const Reference own = CpuReference().compute(half, makeInputs(half, 1));
  EXPECT_EQ(reference.plainCosine, 0);
  EXPECT_EQ(reference.maxPlainLseError, 0);
  EXPECT_GT(own.maxPlainError, reference.maxPlainError);
  EXPECT_GT(own.maxPlainLseError, kTolerances.lse);
  std::vector<uint32_t> ownLse;
  for (float value : own.plainLse)
    ownLse.push_back(bitsOfFloat(value));
  EXPECT_TRUE(judge(half, own, own.plain, &ownLse).failures.empty());
  lse = ownLse;
  EXPECT_EQ(failing(), Names{"lse"});
  for (uint32_t &value : ownLse) // twice as far, and a little more
    if (std::isfinite(floatOfBits(value)))
      value = bitsOfFloat(static_cast<float>(floatOfBits(value) + 2.1 * own.maxPlainLseError * 10));
  EXPECT_EQ(judge(half, own, own.plain, &ownLse).failures.size(), 1u);
}

TEST_F(Judge, wrongElement) {
  size_t last = o.size() - 1;
  o[last] = f16OfFloat(static_cast<float>(reference.o[last] + 0.05));
  Names names = failing();
  EXPECT_NE(std::find(names.begin(), names.end(), "error"), names.end());
}

TEST_F(Judge, elementsJustInsideAndOutsideTheBound) {
  size_t last = o.size() - 1;
  reference.o[last] = 0.25;
  double bound = judge(c, reference, o, &lse).bound;
  double step = ulpAt(DType::F16, 0.25);
  o[last] = f16OfFloat(static_cast<float>(0.25 + std::floor(bound / step) * step));
  EXPECT_EQ(failing(), Names{});
  o[last] = f16OfFloat(static_cast<float>(0.25 + (std::floor(bound / step) + 1) * step));
  EXPECT_EQ(failing(), Names{"error"});
}

TEST_F(Judge, unwrittenElement) {
  o[50 * 16 % o.size()] = kPoison16;
  EXPECT_EQ(failing(), Names{"unwritten"});
}

TEST_F(Judge, notANumber) {
  o.back() = 0x7fff;
  EXPECT_EQ(failing(), Names{"nan"});
  o.back() = 0x7c00;
  EXPECT_EQ(failing(), Names{"nan"});
}

TEST_F(Judge, maskedRowMustBeZero) {
  ASSERT_EQ(reference.lse[0], -INFINITY);
  o[3] = f16OfFloat(1e-6f);
  EXPECT_EQ(failing(), Names{"masked-row"});
}

/// Errors within the bound everywhere, but all to one side: the cosine difference sees them.
TEST_F(Judge, smallErrorsEverywhere) {
  for (size_t i = 0; i < o.size(); ++i)
    if (!std::isinf(reference.lse[i / 16]))
      o[i] = f16OfFloat(static_cast<float>(reference.o[i] + (i % 2 ? 1 : -1) * 0.004));
  reference.maxPlainError = 0.01;
  EXPECT_EQ(failing(), Names{"cosine"});
}

TEST_F(Judge, lseOff) {
  size_t last = lse.size() - 1;
  double ref = reference.lse[last];
  lse[last] = bitsOfFloat(static_cast<float>(ref + 0.9e-5 * std::max(1.0, std::abs(ref))));
  EXPECT_EQ(failing(), Names{});
  lse[last] = bitsOfFloat(static_cast<float>(ref + 1.2e-5 * std::max(1.0, std::abs(ref))));
  EXPECT_EQ(failing(), Names{"lse"});
}

TEST_F(Judge, lseInfinityInTheWrongPlace) {
  lse.back() = bitsOfFloat(-INFINITY);
  EXPECT_EQ(failing(), Names{"lse"});
  lse.back() = bitsOfFloat(static_cast<float>(reference.lse.back()));
  lse[0] = bitsOfFloat(-1e30f);
  EXPECT_EQ(failing(), Names{"lse"});
}

TEST_F(Judge, lseUnwritten) {
  lse.back() = kPoison32;
  EXPECT_EQ(failing(), Names{"lse"});
}

TEST(Ulp, values) {
  EXPECT_EQ(ulpAt(DType::F16, 1), std::ldexp(1, -10));
  EXPECT_EQ(ulpAt(DType::F16, 1.99), std::ldexp(1, -10));
  EXPECT_EQ(ulpAt(DType::F16, 0), std::ldexp(1, -24));
  EXPECT_EQ(ulpAt(DType::BF16, 4), std::ldexp(1, -5));
}

} // namespace
