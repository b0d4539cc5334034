// fagen: each criterion passes a good result and catches its own planted mistake; each tolerance is as documented.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/reference/criteria.h"
#include "lab/cases/placement.h"

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
    for (const Failure &failure : judge(c, reference, Products::Scalar, o, &lse).failures)
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
  Measured measured = judge(c, reference, Products::Scalar, o, &lse);
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
  EXPECT_TRUE(judge(half, own, Products::Scalar, own.plain, &ownLse).failures.empty());
  lse = ownLse;
  EXPECT_EQ(failing(), Names{"lse"});
  for (uint32_t &value : ownLse) // twice as far, and a little more
    if (std::isfinite(floatOfBits(value)))
      value = bitsOfFloat(static_cast<float>(floatOfBits(value) + 2.1 * own.maxPlainLseError * 10));
  EXPECT_EQ(judge(half, own, Products::Scalar, own.plain, &ownLse).failures.size(), 1u);
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
  double bound = judge(c, reference, Products::Scalar, o, &lse).bound;
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

/// A result and its reference made by hand: one row of ones that sees keys. The numbers of the tests are those of
/// docs/Checking.md, not those of kTolerances, so that no factor moves unnoticed.
class Pinned : public testing::Test {
protected:
  static constexpr int64_t kColumns = 20000;

  Pinned() {
    c = parseCase("1,1,1,1,1,16");
    c.shape.headDimV = kColumns;
    reference.o.assign(kColumns, 1);
    reference.lse = {0};
    reference.lseLoss = {0};
    reference.maxMagnitude = 1; // its ulp is 2^-10 in f16 and 2^-7 in bf16
    o.assign(kColumns, f16OfFloat(1));
    lse = {bitsOfFloat(0)};
  }
  /// The criteria that fail.
  std::vector<std::string> failing(Products products = Products::Scalar) const {
    std::vector<std::string> names;
    for (const Failure &failure : judge(c, reference, products, o, &lse).failures)
      names.push_back(failure.criterion);
    return names;
  }
  using Names = std::vector<std::string>;

  /// One element is off by so much.
  void moveOne(double error) { o[7] = halfOfFloat(c.dtype, static_cast<float>(1 + error)); }
  /// So many elements are off by 2^-8, half of them to either side; returns the cosine difference.
  double moveMany(int64_t count) {
    for (int64_t i = 0; i < kColumns; ++i)
      o[i] = f16OfFloat(static_cast<float>(i >= count ? 1 : i % 2 ? 1 - 0x1p-8 : 1 + 0x1p-8));
    const double ab = kColumns, aa = kColumns + static_cast<double>(count) * 0x1p-16, bb = kColumns;
    return 1 - 2 * ab / (aa + bb);
  }
  /// The most elements that moveMany may move for a cosine difference below `bound`, an even number.
  static int64_t mostFor(double bound) {
    const double square = 2 * bound / (1 - bound) * kColumns * 0x1p16; // aa - bb = 2 bb bound / (1 - bound)
    return static_cast<int64_t>(square) / 2 * 2;
  }
  /// LSE is `value`, and so far from the reference as `part` of relative * max(1, |ref|) + absolute.
  void setLse(float value, double part, double relative, double absolute = 0) {
    lse = {bitsOfFloat(value)};
    // |value - ref| = part (relative |ref| + absolute), |ref| < |value|; below 1 |ref| counts as 1.
    const double above = (std::abs(value) - part * absolute) / (1 + part * relative);
    const double ref = above >= 1 ? above : std::abs(value) - part * (relative + absolute);
    reference.lse = {std::copysign(ref, value)};
  }

  Case c;
  Reference reference;
  std::vector<uint16_t> o;
  std::vector<uint32_t> lse;
};

/// max |O - ref| <= 2 ulp at max |ref|, where plain has no error.
TEST_F(Pinned, twoUlps) {
  moveOne(2 * 0x1p-10);
  EXPECT_EQ(failing(), Names{});
  moveOne(3 * 0x1p-10);
  EXPECT_EQ(failing(), Names{"error"});
  c.dtype = DType::BF16;
  o.assign(kColumns, bf16OfFloat(1));
  moveOne(2 * 0x1p-7);
  EXPECT_EQ(failing(), Names{});
  moveOne(3 * 0x1p-7);
  EXPECT_EQ(failing(), Names{"error"});
}

/// The ulp is that of the largest |ref|, not of the element's own.
TEST_F(Pinned, ulpsAreThoseOfTheLargestReference) {
  reference.maxMagnitude = 7.9; // its ulp is 2^-8
  moveOne(2 * 0x1p-8);
  EXPECT_EQ(failing(), Names{});
  moveOne(2 * 0x1p-8 + 0x1p-10);
  EXPECT_EQ(failing(), Names{"error"});
}

/// max |O - ref| <= 2 max |plain - ref| + 2 ulp: 2 times 5 and 2.
TEST_F(Pinned, twicePlain) {
  reference.maxPlainError = 5 * 0x1p-10;
  moveOne(12 * 0x1p-10);
  EXPECT_EQ(failing(), Names{});
  moveOne(13 * 0x1p-10);
  EXPECT_EQ(failing(), Names{"error"});
  moveOne(-12 * 0x1p-10);
  EXPECT_EQ(failing(), Names{});
  moveOne(-12 * 0x1p-10 - 0x1p-11);
  EXPECT_EQ(failing(), Names{"error"});
}

/// 1 - 2 O.ref / (O.O + ref.ref) < 5e-6.
TEST_F(Pinned, cosine) {
  reference.maxPlainError = 0x1p-8; // the first rule allows what moves here
  EXPECT_LT(moveMany(mostFor(5e-6)), 5e-6);
  EXPECT_EQ(failing(), Names{});
  EXPECT_GT(moveMany(mostFor(5e-6) + 2), 5e-6);
  EXPECT_EQ(failing(), Names{"cosine"});
}

/// Products that accumulate in f16: below 5e-6 plus twice plain's.
TEST_F(Pinned, cosineOfHalfAccumulators) {
  c.halfAccum = true;
  reference.maxPlainError = 0x1p-8;
  reference.plainCosine = 1e-6;
  EXPECT_LT(moveMany(mostFor(7e-6)), 7e-6);
  EXPECT_EQ(failing(), Names{});
  EXPECT_GT(moveMany(mostFor(7e-6) + 2), 7e-6);
  EXPECT_EQ(failing(), Names{"cosine"});
}

/// |LSE - ref| <= 1e-5 max(1, |ref|), to a millionth of that.
TEST_F(Pinned, lse) {
  for (float value : {3.0f, -40.0f, 0.25f, -1e-3f}) {
    setLse(value, 1 - 1e-6, 1e-5);
    EXPECT_EQ(failing(), Names{}) << value;
    EXPECT_EQ(failing(Products::TensorCores), Names{}) << value;
    setLse(value, 1 + 1e-6, 1e-5);
    EXPECT_EQ(failing(), Names{"lse"}) << value;
    EXPECT_EQ(failing(Products::TensorCores), Names{"lse"}) << value;
  }
}

/// Kernels on tensor cores: 1e-5 max(1, |ref|) plus the row's own loss. Scalar kernels: nothing of it.
TEST_F(Pinned, lseOfTensorCores) {
  reference.lseLoss = {3e-5};
  for (float value : {3.0f, -40.0f, 0.25f}) {
    setLse(value, 1 - 1e-6, 1e-5, 3e-5);
    EXPECT_EQ(failing(Products::TensorCores), Names{}) << value;
    EXPECT_EQ(failing(Products::Scalar), Names{"lse"}) << value;
    setLse(value, 1 + 1e-6, 1e-5, 3e-5);
    EXPECT_EQ(failing(Products::TensorCores), Names{"lse"}) << value;
    setLse(value, 1 - 1e-6, 1e-5);
    EXPECT_EQ(failing(Products::Scalar), Names{}) << value;
  }
}

/// Each row has its own bound: the loss of one is no room for another.
TEST_F(Pinned, lossOfAnotherRow) {
  c.shape.seqQ = 2;
  c.shape.headDimV = kColumns / 2;
  reference.lseLoss = {0, 1};
  reference.lse = {0.5, 0.5};
  lse = {bitsOfFloat(0.5f), bitsOfFloat(1.5f)};
  EXPECT_EQ(failing(Products::TensorCores), Names{});
  lse = {bitsOfFloat(0.50002f), bitsOfFloat(0.5f)};
  EXPECT_EQ(failing(Products::TensorCores), Names{"lse"});
}

/// Products that accumulate in f16: 1e-5 plus twice plain's largest error, whatever the row.
TEST_F(Pinned, lseOfHalfAccumulators) {
  c.halfAccum = true;
  reference.lseLoss.clear();
  reference.maxPlainLseError = 2e-4;
  for (Products products : {Products::Scalar, Products::TensorCores}) {
    setLse(3, 1 - 1e-6, 4.1e-4);
    EXPECT_EQ(failing(products), Names{});
    setLse(3, 1 + 1e-6, 4.1e-4);
    EXPECT_EQ(failing(products), Names{"lse"});
  }
}

/// Exactly 0, not nearly, where a row sees no key; and -inf exactly there.
TEST_F(Pinned, maskedRows) {
  reference.o.assign(kColumns, 0);
  reference.lse = {-INFINITY};
  lse = {bitsOfFloat(-INFINITY)};
  o.assign(kColumns, 0);
  EXPECT_EQ(failing(), Names{});
  o[3] = 1; // the smallest number above 0
  EXPECT_EQ(failing(), (Names{"masked-row", "cosine"}));
  o[3] = 0;
  for (float wrong : {-3e38f, INFINITY, NAN}) {
    lse = {bitsOfFloat(wrong)};
    EXPECT_EQ(failing(Products::TensorCores), Names{"lse"});
  }
  reference.lse = {0};
  for (float wrong : {-INFINITY, INFINITY, NAN}) {
    lse = {bitsOfFloat(wrong)};
    EXPECT_EQ(failing(Products::TensorCores), Names{"lse"});
  }
}

/// Three runs of each case.
TEST(PinnedRuns, three) { EXPECT_EQ(kTolerances.runs, 3); }

/// Only instructions that conformance has looked at add as kTensorSum says.
TEST(Products, byTheManifestsWord) {
  for (const char *word : {"mma_sync", "wmma", "wgmma"})
    EXPECT_EQ(productsOf(word), Products::TensorCores) << word;
  for (const char *word : {"scalar", "", "tcgen05"})
    EXPECT_EQ(productsOf(word), Products::Scalar) << word;
}

TEST(Ulp, values) {
  EXPECT_EQ(ulpAt(DType::F16, 1), std::ldexp(1, -10));
  EXPECT_EQ(ulpAt(DType::F16, 1.99), std::ldexp(1, -10));
  EXPECT_EQ(ulpAt(DType::F16, 0), std::ldexp(1, -24));
  EXPECT_EQ(ulpAt(DType::BF16, 4), std::ldexp(1, -5));
}

} // namespace
