// fagen: ldmatrix and mma against plain indices and a plain matrix product.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

#include <bit>
#include <cmath>
#include <random>

namespace fagen::emulator::matrixTest {
namespace {

const std::string kFile = "matrix.cu";

/// Element (row, column) of matrix i is 64 i + 8 row + column.
std::vector<unsigned short> fourMatrices() {
  std::vector<unsigned short> elements(256);
  for (int i = 0; i < 256; ++i)
    elements[i] = static_cast<unsigned short>(i);
  return elements;
}

TEST(Matrix, LoadGivesLaneItsPairOfARow) {
  std::vector<unsigned> out(128);
  const Report report = launch({.file = kFile, .symbol = "load_plain", .sharedBytes = 512}, fourMatrices(), out);
  ASSERT_TRUE(report.ok) << text(report);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned first = 64 * i + 8 * (lane / 4) + 2 * (lane % 4);
      EXPECT_EQ(out[4 * lane + i], first | (first + 1) << 16);
    }
}

TEST(Matrix, LoadTransposedGivesLaneItsPairOfAColumn) {
  std::vector<unsigned> out(128);
  const Report report = launch({.file = kFile, .symbol = "load_transposed", .sharedBytes = 512}, fourMatrices(), out);
  ASSERT_TRUE(report.ok) << text(report);
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned first = 64 * i + 8 * (2 * (lane % 4)) + lane / 4;
      EXPECT_EQ(out[4 * lane + i], first | (first + 8) << 16);
    }
}

TEST(Matrix, RowAddressMustBeAMultipleOf16) {
  std::vector<unsigned> out(128);
  const KernelRun run = {.file = kFile, .symbol = "load_plain", .sharedBytes = 1024, .count = 8};
  const Report report = launch(run, fourMatrices(), out);
  expectOnly(report, "misaligned", kFile, "ldmatrix");
  EXPECT_EQ(out[0], 0xffffffffu);
}

float decode(unsigned short bits, bool isBf16) {
  if (isBf16)
    return std::bit_cast<float>(unsigned(bits) << 16);
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float magnitude =
      exponent == 0 ? std::ldexp(float(fraction), -24) : std::ldexp(float(1024 + fraction), exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

struct Matrices {
  unsigned short a[16][16], b[16][8];
  float c[16][8];
};

/// As PTX ISA's figures of mma.m16n8k16 give each lane its elements.
std::vector<unsigned> fragments(const Matrices &m) {
  std::vector<unsigned> words;
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned group = lane / 4, inGroup = lane % 4;
    for (unsigned i = 0; i < 8; i += 2) {
      const auto element = [&](unsigned e) {
        const unsigned row = e / 2 % 2 == 0 ? group : group + 8;
        const unsigned column = inGroup * 2 + e % 2 + (e < 4 ? 0 : 8);
        return unsigned(m.a[row][column]);
      };
      words.push_back(element(i) | element(i + 1) << 16);
    }
    for (unsigned i = 0; i < 4; i += 2) {
      const unsigned row = inGroup * 2 + (i < 2 ? 0 : 8);
      words.push_back(m.b[row][group] | unsigned(m.b[row + 1][group]) << 16);
    }
    for (unsigned i = 0; i < 4; ++i)
      words.push_back(std::bit_cast<unsigned>(m.c[i < 2 ? group : group + 8][inGroup * 2 + i % 2]));
  }
  return words;
}

class MatrixProduct : public testing::TestWithParam<bool> {};

TEST_P(MatrixProduct, EqualsPlainProduct) {
  const bool isBf16 = GetParam();
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Matrices m;
    const auto draw = [&] { // finite, of all signs and, after a while, all exponents
      const unsigned bits = random() & 0xffff;
      const unsigned exponent = isBf16 ? 100 + bits % 50 : round < 25 ? 10 + bits % 10 : bits % 31;
      return static_cast<unsigned short>(isBf16 ? (random() & 0x807f) | exponent << 7
                                                : (random() & 0x83ff) | exponent << 10);
    };
    for (auto &row : m.a)
      for (auto &element : row)
        element = draw();
    for (auto &row : m.b)
      for (auto &element : row)
        element = draw();
    for (auto &row : m.c)
      for (auto &element : row)
        element = decode(draw(), isBf16);
    std::vector<float> out(128);
    const Report report = launch({.file = kFile, .symbol = isBf16 ? "product_bf16" : "product_f16"}, fragments(m), out);
    ASSERT_TRUE(report.ok) << text(report);
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned column = 0; column < 8; ++column) {
        double sum = 0.0;
        for (unsigned k = 0; k < 16; ++k)
          sum += double(decode(m.a[row][k], isBf16)) * decode(m.b[k][column], isBf16);
        const unsigned lane = row % 8 * 4 + column / 2;
        ASSERT_EQ(out[4 * lane + row / 8 * 2 + column % 2], float(m.c[row][column] + sum));
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, MatrixProduct, testing::Bool(),
                         [](const auto &info) { return info.param ? "Bf16" : "F16"; });

TEST(Matrix, ProductOfNotANumberSpreads) {
  Matrices m = {};
  m.a[3][5] = 0x7e00;
  m.a[9][0] = 0x7c00;
  m.b[0][2] = 0x3c00;
  std::vector<float> out(128);
  ASSERT_TRUE(launch({.file = kFile, .symbol = "product_f16"}, fragments(m), out).ok);
  const auto d = [&](unsigned row, unsigned column) {
    return out[4 * (row % 8 * 4 + column / 2) + row / 8 * 2 + column % 2];
  };
  EXPECT_TRUE(std::isnan(d(3, 0)));
  EXPECT_EQ(d(9, 2), INFINITY);
  EXPECT_TRUE(std::isnan(d(9, 3))); // infinity times zero
  EXPECT_EQ(d(2, 2), 0.0f);
}

} // namespace
} // namespace fagen::emulator::matrixTest
