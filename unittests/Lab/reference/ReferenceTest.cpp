// fagen: the reference against results worked out by hand.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/reference/reference.h"
#include "lab/reference/criteria.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace fagen::lab;

namespace {

std::vector<uint16_t> halves(std::initializer_list<float> values) {
  std::vector<uint16_t> bits;
  for (float value : values)
    bits.push_back(f16OfFloat(value));
  return bits;
}

/// One head of two queries and two keys with one column: q = (1, 2), k = (ln 2, 0), v = (1, 4), scale 1.
/// Row 0: p = (2, 1) / 3, O = 2, LSE = ln 3. Row 1: p = (4, 1) / 5, O = 8/5, LSE = ln 5.
TEST(Reference, twoByTwo) {
  Case c = parseCase("1,1,1,2,2,1 scale=1");
  DenseInputs inputs{halves({1, 2}), halves({0.693147f, 0}), halves({1, 4})};
  double ln2 = floatOfF16(inputs.k[0]); // as f16 has it
  Reference r = CpuReference().compute(c, inputs);
  double a = std::exp(ln2), b = std::exp(2 * ln2);
  EXPECT_NEAR(r.o[0], (a + 4) / (a + 1), 1e-15);
  EXPECT_NEAR(r.o[1], (b + 4) / (b + 1), 1e-15);
  EXPECT_NEAR(r.o[0], 2, 1e-3);
  EXPECT_NEAR(r.lse[0], std::log(a + 1), 1e-15);
  EXPECT_NEAR(r.lse[1], std::log(b + 1), 1e-15);
  EXPECT_GT(r.maxPlainError, 0);
  EXPECT_LT(r.maxPlainError, 2e-3);
}

TEST(Reference, causalRowsThatSeeNothing) {
  Case c = parseCase("1,1,1,3,1,1 mask=causal scale=1");
  Reference r = CpuReference().compute(c, {halves({1, 2, 3}), halves({2}), halves({5})});
  EXPECT_EQ(r.o, (std::vector<double>{0, 0, 5}));
  EXPECT_EQ(r.lse[0], -INFINITY);
  EXPECT_EQ(r.lse[1], -INFINITY);
  EXPECT_EQ(r.lse[2], 6);
  EXPECT_EQ(r.maxPlainError, 0);
}

/// Scale 0 is the plain average; query heads share K/V heads in order.
TEST(Reference, scaleZeroAndGroupedHeads) {
  Case c = parseCase("1,4,2,1,2,1 scale=0");
  Reference r = CpuReference().compute(c, {halves({9, 9, 9, 9}), halves({1, 2, 3, 4}), halves({1, 3, 10, 30})});
  EXPECT_EQ(r.o, (std::vector<double>{2, 2, 20, 20}));
  for (double lse : r.lse)
    EXPECT_NEAR(lse, std::log(2), 1e-15);
}

TEST(Reference, defaultScaleIsOneOverRootOfHeadDim) {
  Case c = parseCase("1,1,1,1,2,4,1");
  Reference r = CpuReference().compute(c, {halves({1, 1, 1, 1}), halves({1, 1, 1, 1, 0, 0, 0, 0}), halves({1, 0})});
  EXPECT_NEAR(r.o[0], std::exp(2.0) / (std::exp(2.0) + 1), 1e-15);
}

/// Inputs do what their names say.
TEST(Inputs, scoresOfEachKind) {
  auto lseRange = [](const char *text) {
    Case c = parseCase(text);
    Reference r = CpuReference().compute(c, makeInputs(c, 1));
    auto [low, high] = std::minmax_element(r.lse.begin(), r.lse.end());
    return std::pair(*low, *high);
  };
  EXPECT_GT(lseRange("1,4,4,64,64,64 inputs=large").second, 100);
  EXPECT_LT(lseRange("1,4,4,64,65,64 inputs=negative").second, -90);
  auto constant = lseRange("1,4,4,8,65,64 inputs=constant");
  EXPECT_EQ(constant.first, constant.second);
}

/// What one rounding of a perfect result costs in cosine difference: docs/Checking.md cites these.
TEST(Criteria, cosineOfOneRounding) {
  Case c = parseCase("2,4,4,64,256,64");
  for (DType dtype : {DType::F16, DType::BF16}) {
    c.dtype = dtype;
    Reference r = CpuReference().compute(c, makeInputs(c, 1));
    double ab = 0, aa = 0, bb = 0, plainAb = 0, plainAa = 0;
    for (size_t i = 0; i < r.o.size(); ++i) {
      double rounded = floatOfHalf(dtype, halfOfFloat(dtype, static_cast<float>(r.o[i])));
      double plain = floatOfHalf(dtype, r.plain[i]);
      ab += rounded * r.o[i];
      aa += rounded * rounded;
      bb += r.o[i] * r.o[i];
      plainAb += plain * r.o[i];
      plainAa += plain * plain;
    }
    double once = cosineDifference(ab, aa, bb), plain = cosineDifference(plainAb, plainAa, bb);
    EXPECT_LT(once, dtype == DType::F16 ? 3e-8 : 1.6e-6);
    EXPECT_GT(once, dtype == DType::F16 ? 1e-8 : 0.8e-6);
    EXPECT_LT(plain, kTolerances.cosine);
    RecordProperty(dtype == DType::F16 ? "f16_rounded_once" : "bf16_rounded_once", std::to_string(once * 1e6));
    printf("%s: rounded once %.3g, plain %.3g\n", dtype == DType::F16 ? "f16" : "bf16", once, plain);
  }
}

} // namespace
