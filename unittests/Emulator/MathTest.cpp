// fagen: conversions, all values of them, and the corners of the arithmetic functions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Kernels.h"

#include <bit>
#include <cmath>
#include <limits>

namespace fagen::emulator::mathTest {
namespace {

const std::string kFile = "math.cu";
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// A 16-bit format by its definition: `fractionBits` bits of fraction, the exponent with `bias` above.
double value(unsigned bits, int fractionBits, int bias) {
  const int exponent = static_cast<int>((bits & 0x7fff) >> fractionBits);
  const unsigned fraction = bits & ((1u << fractionBits) - 1);
  const double unit = std::ldexp(1.0, (exponent == 0 ? 1 : exponent) - bias - fractionBits);
  const double magnitude = (exponent == 0 ? fraction : fraction + (1u << fractionBits)) * unit;
  return bits & 0x8000 ? -magnitude : magnitude;
}

struct Format {
  const char *widen;
  const char *round;
  int fractionBits;
  int bias;
  unsigned infinity;
};
constexpr Format kFormats[] = {{"widen_f16", "round_f16", 10, 15, 0x7c00},
                               {"widen_bf16", "round_bf16", 7, 127, 0x7f80}};

TEST(Math, EveryValueWidens) {
  for (const Format &format : kFormats) {
    std::vector<float> out(65536);
    const KernelRun run = {.file = kFile, .symbol = format.widen, .grid = 256, .threads = 256};
    ASSERT_TRUE(launch(run, std::vector<unsigned>(1), out).ok);
    for (unsigned bits = 0; bits < 65536; ++bits) {
      if ((bits & 0x7fff) > format.infinity)
        ASSERT_EQ(std::bit_cast<unsigned>(out[bits]), format.fractionBits == 10 ? 0x7fffffffu : bits << 16);
      else if ((bits & 0x7fff) == format.infinity)
        ASSERT_EQ(out[bits], bits & 0x8000 ? -kInfinity : kInfinity);
      else
        ASSERT_EQ(out[bits], value(bits, format.fractionBits, format.bias)) << bits;
      const bool isNan = (bits & 0x7fff) > format.infinity;
      ASSERT_TRUE(isNan || std::signbit(out[bits]) == ((bits & 0x8000) != 0)) << bits;
    }
  }
}

/// For each value of the format: itself, the middle to the next one, and the neighbours of that middle in f32.
TEST(Math, EveryValueAndEveryTieRoundsToNearestEven) {
  for (const Format &format : kFormats) {
    std::vector<float> in;
    std::vector<unsigned> expected;
    for (unsigned bits = 0; bits < format.infinity; ++bits) {
      const double low = value(bits, format.fractionBits, format.bias);
      const double high = value(bits + 1, format.fractionBits, format.bias); // beyond the largest: as if there was one
      const float middle = static_cast<float>((low + high) / 2);
      in.insert(in.end(), {float(low), middle, std::nextafter(middle, 0.0f), std::nextafter(middle, kInfinity)});
      expected.insert(expected.end(), {bits, bits + (bits & 1), bits, bits + 1});
    }
    const size_t positives = in.size();
    for (size_t i = 0; i < positives; ++i) {
      in.push_back(-in[i]);
      expected.push_back(expected[i] | 0x8000);
    }
    in.insert(in.end(), {kInfinity, -kInfinity, kNan, -kNan, 1e38f});
    expected.insert(expected.end(),
                    {format.infinity, format.infinity | 0x8000, 0x7fff, 0x7fff, format.bias == 15 ? 0x7c00u : 0x7e96u});
    const size_t count = in.size();
    in.resize((count + 255) / 256 * 256);
    std::vector<unsigned short> out(in.size());
    const KernelRun run = {.file = kFile, .symbol = format.round, .grid = unsigned(in.size() / 256), .threads = 256};
    const Report report = launch(run, in, out);
    ASSERT_TRUE(report.ok) << text(report);
    for (size_t i = 0; i < count; ++i)
      ASSERT_EQ(out[i], expected[i]) << format.round << " of " << in[i];
  }
}

struct Results {
  unsigned pairF16, pairBf16;
  float exp2, log2, fma, mul, add, div, max, maxOrNan, minOrNan;
};

Results functions(float a, float b = 0.0f, float c = 0.0f) {
  std::vector<unsigned> out(11);
  EXPECT_TRUE(launch({.file = kFile, .symbol = "functions", .threads = 1}, std::vector<float>{a, b, c}, out).ok);
  return std::bit_cast<Results>(*reinterpret_cast<unsigned(*)[11]>(out.data()));
}

TEST(Math, PairsHaveTheFirstBelow) {
  EXPECT_EQ(functions(1.0f, -2.0f).pairF16, 0xc0003c00u);
  EXPECT_EQ(functions(1.0f, -2.0f).pairBf16, 0xc0003f80u);
}

TEST(Math, Exp2) {
  EXPECT_EQ(functions(3.0f).exp2, 8.0f);
  EXPECT_EQ(functions(-kInfinity).exp2, 0.0f);
  EXPECT_EQ(functions(kInfinity).exp2, kInfinity);
  EXPECT_EQ(functions(-126.0f).exp2, 0x1p-126f);
  EXPECT_EQ(functions(-127.0f).exp2, 0.0f); // would be subnormal
  EXPECT_EQ(functions(0x1p-130f).exp2, 1.0f);
  EXPECT_TRUE(std::isnan(functions(kNan).exp2));
}

TEST(Math, Log2) {
  EXPECT_EQ(functions(8.0f).log2, 3.0f);
  EXPECT_EQ(functions(0.0f).log2, -kInfinity);
  EXPECT_EQ(functions(0x1p-130f).log2, -kInfinity); // flushed to zero first
  EXPECT_EQ(functions(kInfinity).log2, kInfinity);
  EXPECT_TRUE(std::isnan(functions(-1.0f).log2));
}

TEST(Math, FmaRoundsOnceAndTheOthersDoNotFuse) {
  const float a = 1.0f + 0x1p-12f;
  const Results results = functions(a, a, -1.0f);
  EXPECT_EQ(results.fma, 0x1p-11f + 0x1p-24f);
  EXPECT_EQ(results.mul, 1.0f + 0x1p-11f); // the last bit is a tie, to even
  EXPECT_EQ(results.add, 2.0f + 0x1p-11f);
  EXPECT_EQ(functions(1.0f, 3.0f).div, 1.0f / 3.0f);
  EXPECT_EQ(functions(0x1p-130f, 1.0f).mul, 0x1p-130f); // subnormals are kept
}

TEST(Math, Max) {
  EXPECT_EQ(functions(1.0f, 2.0f).max, 2.0f);
  EXPECT_EQ(functions(kNan, 2.0f).max, 2.0f);
  EXPECT_EQ(functions(1.0f, kNan).max, 1.0f);
  EXPECT_EQ(std::bit_cast<unsigned>(functions(kNan, -kNan).max), 0x7fffffffu);
  EXPECT_FALSE(std::signbit(functions(-0.0f, 0.0f).max));
  EXPECT_FALSE(std::signbit(functions(0.0f, -0.0f).max));
  EXPECT_EQ(functions(-kInfinity, -kInfinity).max, -kInfinity);
}

TEST(Math, NaNWinsWhereAskedTo) {
  for (const auto &[a, b] : {std::pair(kNan, 2.0f), std::pair(2.0f, kNan), std::pair(-kNan, kInfinity)}) {
    EXPECT_EQ(std::bit_cast<unsigned>(functions(a, b).maxOrNan), 0x7fffffffu);
    EXPECT_EQ(std::bit_cast<unsigned>(functions(a, b).minOrNan), 0x7fffffffu);
  }
  EXPECT_EQ(functions(-3.0f, 2.0f).maxOrNan, 2.0f);
  EXPECT_EQ(functions(-3.0f, 2.0f).minOrNan, -3.0f);
  EXPECT_EQ(functions(kInfinity, -kInfinity).minOrNan, -kInfinity);
  EXPECT_TRUE(std::signbit(functions(-0.0f, 0.0f).minOrNan));
}

} // namespace
} // namespace fagen::emulator::mathTest
