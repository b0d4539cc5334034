// fagen: what tensor cores may lose of a sum: by hand, and against how an H200 was found to add.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/conformance/accumulation.h"
#include "lab/kernels/sum_loss.h"
#include "lab/reference/criteria.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <random>

using namespace fagen::lab;

namespace {

using Values = std::vector<double>;

double lossOf(DType dtype, const Values &a, const Values &b) {
  SumLoss loss(dtype);
  for (size_t first = 0; first < a.size(); first += 16)
    loss.addStep([&](int i) { return a[first + i]; }, [&](int i) { return b[first + i]; },
                 static_cast<int>(std::min<size_t>(16, a.size() - first)));
  return loss.bound();
}
/// Of products with 1, which f16 and bf16 have.
double lossOf(const Values &products) { return lossOf(DType::BF16, products, Values(products.size(), 1)); }

/// Zeros lose nothing, nor does a sum so small that f32 has all bits that the terms kept.
TEST(SumLoss, nothing) {
  EXPECT_EQ(lossOf({}), 0);
  EXPECT_EQ(lossOf(Values(32, 0)), 0);
  EXPECT_EQ(lossOf({1, -1, 0x1p-25}), 0);
  EXPECT_EQ(lossOf({1, -0.75}), 0);
}

/// A sum is cut to 24 bits: by up to its last place, less the last bit that the terms kept, whatever bits it has.
TEST(SumLoss, sums) {
  EXPECT_EQ(lossOf({1}), 0x1p-23 - 0x1p-25);
  EXPECT_EQ(lossOf({1, 0x1p-24}), 0x1p-23 - 0x1p-25);
  EXPECT_EQ(lossOf({1, 1, 0x1p-24}), 0x1p-22 - 0x1p-25); // from 2 on the last place is twice as large
  EXPECT_EQ(lossOf({-1, -0x1p-24}), 0x1p-23 - 0x1p-25);
}

/// A term with bits below the 25 is cut toward zero: less than 2^-25 of the largest exponent.
TEST(SumLoss, terms) {
  const double ofSum = 0x1p-23 - 0x1p-25;
  EXPECT_EQ(lossOf({1, 0x1p-26}), ofSum + 0x1p-25);
  EXPECT_EQ(lossOf({1, 0x1p-26, 0x1p-27, 0x1p-28}), ofSum + 3 * 0x1p-25);
  // What a negative one loses raises the sum, and what the positive sum loses lowers it.
  EXPECT_EQ(lossOf({1, 0x1p-23, -0x1p-26}), ofSum);
  EXPECT_EQ(lossOf({1, 0x1p-23, -0x1p-26, -0x1p-26, -0x1p-26, -0x1p-26}), 4 * 0x1p-25);
}

/// The exponent of a product is the sum of its factors': 1.5 times 1.5 has that of 1, not of 2.
TEST(SumLoss, exponentsOfProducts) {
  EXPECT_EQ(lossOf(DType::BF16, {1.5, 0x1p-25}, {1.5, 1}), 0x1p-22 - 0x1p-25);
  // A subnormal f16 has the exponent of the smallest normal one.
  EXPECT_EQ(lossOf(DType::F16, {0x1p-24, 0x1p-24}, {1, 0x1p-16}), 0x1p-39);
}

/// The accumulator is a term of the next step, and it may be cut there; each step's sum is.
TEST(SumLoss, steps) {
  Values products(32, 0);
  products[0] = 1;
  products[16] = 8;
  const double ofFirst = 0x1p-23 - 0x1p-25; // the accumulator may lie below 1, where its last place is 2^-24
  EXPECT_EQ(lossOf(products), ofFirst + 0x1p-22 + 0x1p-20 - 0x1p-22);
  products[16] = 4;
  EXPECT_EQ(lossOf(products), ofFirst + 0x1p-23 + 0x1p-21 - 0x1p-23);
  products[16] = 2; // keeps 2^-24
  EXPECT_EQ(lossOf(products), ofFirst + 0x1p-22 - 0x1p-24);
}

/// How `fagen-run conformance` found that an H200 adds.
constexpr Accumulation kFound{.products = 16, .fraction = 25, .truncate = true};

/// q . k as tensor cores give it.
double onTensorCores(DType dtype, const uint16_t *q, const uint16_t *k, int64_t headDim) {
  uint32_t sum = 0;
  for (int64_t first = 0; first < headDim; first += 16) {
    Dot dot{.factor = factorOf(dtype), .half = false, .a = {}, .b = {}, .c = sum};
    std::copy_n(q + first, 16, dot.a.begin());
    std::copy_n(k + first, 16, dot.b.begin());
    sum = accumulate(kFound, dot);
  }
  return floatOfBits(sum);
}

/// Values of several kinds: of Q times 30, of one sign, of many exponents, and sums that cancel.
void draw(int kind, std::mt19937_64 &random, DType dtype, std::vector<uint16_t> &q, std::vector<uint16_t> &k) {
  std::normal_distribution<double> normal;
  for (size_t i = 0; i < q.size(); ++i) {
    double a = normal(random), b = normal(random);
    if (kind == 0)
      a *= 30;
    else if (kind == 1)
      a = std::abs(a), b = std::abs(b);
    else if (kind == 2)
      a = std::ldexp(a, static_cast<int>(random() % 20) - 10);
    q[i] = halfOfFloat(dtype, static_cast<float>(a));
    k[i] = halfOfFloat(dtype, static_cast<float>(b));
    if (kind == 3 && i >= q.size() / 2 && i % 7) {
      q[i] = q[i - q.size() / 2];
      k[i] = k[i - q.size() / 2] ^ 0x8000;
    }
  }
}

/// Never less than what is lost, and no more than it can be: some sums lose all of it.
TEST(SumLoss, boundsWhatTensorCoresLose) {
  std::mt19937_64 random(1);
  for (int kind = 0; kind < 4; ++kind)
    for (DType dtype : {DType::F16, DType::BF16})
      for (int64_t headDim : {16, 64, 96, 256}) {
        double used = 0;
        for (int row = 0; row < 1500; ++row) {
          std::vector<uint16_t> q(headDim), k(headDim);
          draw(kind, random, dtype, q, k);
          Values a(headDim), b(headDim);
          double exact = 0;
          for (int64_t i = 0; i < headDim; ++i) {
            a[i] = floatOfHalf(dtype, q[i]);
            b[i] = floatOfHalf(dtype, k[i]);
            exact += a[i] * b[i];
          }
          const double lost = std::abs(onTensorCores(dtype, q.data(), k.data(), headDim) - exact);
          const double bound = lossOf(dtype, a, b);
          ASSERT_LE(lost, bound) << kind << " " << nameOf(dtype) << " " << headDim << " " << row;
          used = std::max(used, bound > 0 ? lost / bound : 0);
        }
        EXPECT_GT(used, headDim == 16   ? 0.8
                        : headDim < 256 ? 0.4
                                        : 0.3)
            << kind << " " << nameOf(dtype) << " " << headDim;
      }
}

/// Two keys of score 1/2, of which one loses 2^-24 - 2^-26 and the other, with a term to cut, 2^-24: the mean, times
/// scale.
TEST(SumLoss, ofLse) {
  const auto half = [](double x) { return f16OfFloat(static_cast<float>(x)); };
  Case c = parseCase("1,1,1,1,2,16 scale=3");
  DenseInputs inputs{std::vector<uint16_t>(16), std::vector<uint16_t>(32), std::vector<uint16_t>(32)};
  inputs.q[0] = half(0.5);
  inputs.q[1] = half(0x1p-14);
  inputs.k[0] = inputs.k[16] = half(1);
  inputs.k[16 + 1] = half(0x1p-13); // 2^-27 next to 2^-1
  const Reference reference = CpuReference().compute(c, inputs);
  ASSERT_EQ(reference.lseLoss.size(), 1u);
  EXPECT_NEAR(reference.lseLoss[0], 3 * (0x1p-24 - 0x1p-26 + 0x1p-24) / 2, 1e-13);
  c.halfAccum = true;
  EXPECT_TRUE(CpuReference().compute(c, inputs).lseLoss.empty());
}

/// The LSE of rows that see one key, its score, as tensor cores give it.
std::vector<uint32_t> lseOnTensorCores(const Case &c, const DenseInputs &inputs) {
  const Shape &shape = c.shape;
  const auto scale = static_cast<float>(c.scaleValue());
  std::vector<uint32_t> lse;
  for (int64_t row = 0; row < shape.rows(); ++row) {
    const int64_t kvHead = row / shape.seqQ * shape.kvHeads / shape.heads;
    lse.push_back(
        bitsOfFloat(scale * static_cast<float>(onTensorCores(c.dtype, &inputs.q[row * shape.headDimQK],
                                                             &inputs.k[kvHead * shape.headDimQK], shape.headDimQK))));
  }
  return lse;
}

/// Rows that see one key, Q times 30, head_dim 256: on tensor cores some miss 1e-5 max(1, |ref|), and none misses the
/// bound with what they may lose. Judged as the result of a scalar kernel they fail. The first case is of the suite
/// `hard`.
TEST(SumLoss, rowsThatSeeOneKey) {
  for (const char *text : {"2,4,2,130,1,256 inputs=large", "1,16,16,1024,1,256,16 inputs=large",
                           "1,16,16,1024,1,256,16 inputs=large dtype=bf16"}) {
    const Case c = parseCase(text);
    const DenseInputs inputs = makeInputs(c, 1);
    const Reference reference = CpuReference().compute(c, inputs);
    const std::vector<uint32_t> lse = lseOnTensorCores(c, inputs);
    const Measured measured = judge(c, reference, Products::TensorCores, reference.plain, &lse);
    EXPECT_TRUE(measured.failures.empty()) << measured.failures[0].message;
    EXPECT_GT(measured.lseError, 1e-5) << text;
    EXPECT_LT(measured.lseUsed, 0.6) << text;
    EXPECT_GT(measured.lseUsed, 0.2) << text;
    const Measured scalar = judge(c, reference, Products::Scalar, reference.plain, &lse);
    ASSERT_EQ(scalar.failures.size(), 1u) << text;
    EXPECT_EQ(scalar.failures[0].criterion, "lse") << text;
    printf("%s: LSE up to %.3g of max(1, |ref|) off, %.2f of the bound; %s\n", text, measured.lseError,
           measured.lseUsed, scalar.failures[0].message.c_str());
  }
}

/// The first of those cases as an H200 gave it, bit by bit: evidence/h200/check_heads.log.
TEST(SumLoss, sameAsOnAGpu) {
  const Case c = parseCase("2,4,2,130,1,256 inputs=large");
  const DenseInputs inputs = makeInputs(c, 1);
  const Reference reference = CpuReference().compute(c, inputs);
  const std::vector<uint32_t> lse = lseOnTensorCores(c, inputs);
  const Measured measured = judge(c, reference, Products::Scalar, reference.plain, &lse);
  ASSERT_EQ(measured.failures.size(), 1u);
  EXPECT_EQ(
      measured.failures[0].message,
      "4 of 1040 values of LSE differ by more than 1e-05 * max(1, |ref|); batch 0, head 0, row 65: LSE 0.86450863, "
      "ref 0.8644952");
}

/// kTensorSum is what the evidence has, for every instruction on 16-bit values with f32 accumulators.
TEST(SumLoss, asConformanceFound) {
  std::ifstream file(FAGEN_CONFORMANCE_EVIDENCE);
  const auto models = nlohmann::json::parse(file)["conformance"]["models"];
  int instructions = 0;
  for (const auto &model : models) {
    const std::string name = model["name"];
    if (name.find("f16_f16_") != std::string::npos ||
        name.find("e4m3") != std::string::npos) // accumulators of f16; bytes
      continue;
    ++instructions;
    EXPECT_EQ(model["best"][0]["different"], 0) << name;
    const Accumulation *way = findAccumulation(model["best"][0]["model"]);
    ASSERT_NE(way, nullptr) << name;
    EXPECT_TRUE(way->truncate && way->joined && !way->zeros && !way->ideal) << name;
    EXPECT_EQ(way->products, kTensorSum.products) << name;
    EXPECT_EQ(way->fraction, kTensorSum.bits) << name;
  }
  EXPECT_EQ(instructions, 8); // mma, wmma with B by rows and by columns, wgmma; each of f16 and bf16
}

} // namespace
