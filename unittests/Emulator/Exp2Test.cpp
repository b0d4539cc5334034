// fagen: 2^x by polynomial: its error, its ends, and which terms of a thread it computes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fagen::emulator::exp2Test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> run(const char *symbol, const std::vector<float> &in) {
  std::vector<float> out(in.size());
  const bool isOneThread = std::string(symbol) != "polynomials";
  const KernelRun run = {.file = "exp2.cu",
                         .symbol = symbol,
                         .grid = isOneThread ? 1u : 64u,
                         .threads = isOneThread ? 1u : 256u,
                         .count = int(in.size())};
  const Report report = launch(run, in, out);
  EXPECT_TRUE(report.ok) << text(report);
  return out;
}

double errorOf(float x, float power) { return power / std::exp2(double(x)) - 1; }

/// Over all f32 between 1e-8 and 126 of either sign it is 1.605e-7 = 2^-22.57, 2.015 ulp, -8e-9 in the mean; here every
/// 32nd of a power of two's 2^16, where it is as large as anywhere.
TEST(Exp2, PolynomialIsWithinItsBound) {
  std::vector<float> in;
  for (int i = -(1 << 18); i < 1 << 18; ++i)
    in.push_back(float(i) * 0x1p-17f); // -2 to 2
  for (int i = -(126 << 10); i < 127 << 10; ++i)
    in.push_back(float(i) * 0x1p-10f);
  const std::vector<float> out = run("polynomials", in);
  double largest = 0, sum = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const double error = errorOf(in[i], out[i]);
    largest = std::max(largest, std::abs(error));
    sum += error;
  }
  EXPECT_LT(largest, 0x1p-22 / std::sqrt(2));
  EXPECT_GT(largest, 0x1p-23); // the arguments are dense enough to see it
  EXPECT_LT(std::abs(sum / double(in.size())), 2e-8);
}

TEST(Exp2, IntegersAreExact) {
  std::vector<float> in = {0.0f, -0.0f};
  for (int i = -126; i <= 127; ++i)
    in.push_back(float(i));
  const std::vector<float> out = run("polynomials", in);
  for (size_t i = 0; i < in.size(); ++i)
    EXPECT_EQ(out[i], std::exp2(in[i])) << in[i];
}

TEST(Exp2, SmallArgumentsVanish) {
  for (const float power : run("polynomials", {-kInfinity, -1e38f, -16777216.0f, -300.0f, -128.0f, -127.0f, -126.6f}))
    EXPECT_EQ(power, 0.0f);
  for (const float x : {-126.4f, -126.1f}) // as a subnormal: the neighbour of 2^x or 0
    EXPECT_NEAR(run("polynomials", {x, x})[0], std::exp2(double(x)), 0x1p-147);
}

TEST(Exp2, LargeArgumentsStayLarge) {
  float before = 0;
  for (const float power : run("polynomials", {100.0f, 126.9f, 127.49f, 127.6f, 128.0f, 129.0f, 255.0f, 256.0f, 383.0f,
                                               512.0f, 1e6f, 16777216.0f, 1e30f, kInfinity})) {
    EXPECT_GE(power, before);
    before = power;
  }
  EXPECT_EQ(before, kInfinity);
  EXPECT_EQ(run("polynomials", {127.6f, 128.0f}), (std::vector<float>{kInfinity, kInfinity}));
}

TEST(Exp2, NaNStays) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float power : run("polynomials", {nan, -nan}))
    EXPECT_TRUE(std::isnan(power));
}

/// By two arguments whose powers differ in the last bits; a NaN harms no other term.
TEST(Exp2, EveryThirdTermIsAPolynomial) {
  const float x = 0.500044f, nan = std::numeric_limits<float>::quiet_NaN();
  const float polynomial = run("polynomials", {x, x})[0], unit = run("none", {x, x})[0];
  ASSERT_NE(polynomial, unit);
  std::vector<float> in(14, x);
  in[5] = nan;
  const std::vector<float> out = run("every_third", in);
  for (size_t i = 0; i < in.size(); ++i) {
    const float expected = i % 3 == 2 ? polynomial : unit;
    EXPECT_TRUE(i == 5 ? std::isnan(out[i]) : out[i] == expected) << i << ": " << out[i];
  }
}

} // namespace
} // namespace fagen::emulator::exp2Test
