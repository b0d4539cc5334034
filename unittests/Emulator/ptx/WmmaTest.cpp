// fagen: wmma against a plain matrix product, and what it refuses.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../Kernels.h"

#include <bit>
#include <cmath>
#include <random>

namespace fagen::emulator::wmmaTest {
namespace {

const std::string kFile = "wmma.cu";
constexpr size_t kStorageBytes = 16 * 48 * 2 + 16 * 80;

double decode(unsigned short bits, bool isBf16) {
  if (isBf16)
    return std::bit_cast<float>(unsigned(bits) << 16);
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(double(fraction), -24) : std::ldexp(double(1024 + fraction), exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/// x rounded to the nearest f16, ties to even; x is below the largest f16.
double roundToHalf(double x) {
  if (x == 0)
    return x;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x), -14) - 10);
  return std::nearbyint(x / unit) * unit;
}

struct Types {
  const char *symbol;
  bool isBf16, isHalf, isColumns;
};

class WmmaProduct : public testing::TestWithParam<Types> {};

TEST_P(WmmaProduct, EqualsPlainProductAddedTwice) {
  const auto [symbol, isBf16, isHalf, isColumns] = GetParam();
  std::mt19937 random(11);
  for (int round = 0; round < 30; ++round) {
    std::vector<unsigned short> in(512);
    for (unsigned short &element : in) {
      const unsigned bits = random() & 0xffff;
      element = static_cast<unsigned short>(isBf16 ? (random() & 0x807f) | (110 + bits % 30) << 7
                                                   : (random() & 0x83ff) | (8 + bits % 9) << 10);
    }
    std::vector<float> out(256);
    const Report report = launch({.file = kFile, .symbol = symbol, .sharedBytes = kStorageBytes}, in, out);
    ASSERT_TRUE(report.ok) << text(report);
    for (unsigned row = 0; row < 16; ++row)
      for (unsigned column = 0; column < 16; ++column) {
        double sum = 0.0;
        for (unsigned k = 0; k < 16; ++k)
          sum += decode(in[16 * row + k], isBf16) *
                 decode(in[256 + (isColumns ? 16 * column + k : 16 * k + column)], isBf16);
        const auto rounded = [half = isHalf](double x) { return half ? roundToHalf(x) : double(float(x)); };
        ASSERT_EQ(out[16 * row + column], rounded(rounded(sum) + sum)) << row << ", " << column;
      }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types, WmmaProduct,
    testing::Values(Types{"f32_f16_row", false, false, false}, Types{"f32_f16_col", false, false, true},
                    Types{"f32_bf16_row", true, false, false}, Types{"f32_bf16_col", true, false, true},
                    Types{"f16_f16_row", false, true, false}, Types{"f16_f16_col", false, true, true}),
    [](const auto &info) { return std::string(info.param.symbol); });

TEST(Wmma, LayoutsOfLoadAndProductMustAgree) {
  std::mt19937 random(3);
  std::vector<unsigned short> in(512);
  for (unsigned short &element : in)
    element = static_cast<unsigned short>((random() & 0x83ff) | 15 << 10);
  std::vector<float> mixed(256), right(256);
  ASSERT_TRUE(launch({.file = kFile, .symbol = "mixed_layouts", .sharedBytes = kStorageBytes}, in, mixed).ok);
  ASSERT_TRUE(launch({.file = kFile, .symbol = "f32_f16_row", .sharedBytes = kStorageBytes}, in, right).ok);
  EXPECT_NE(mixed, right);
}

TEST(Wmma, HalfAccumulatorsOverflowToInfinity) {
  std::vector<unsigned short> in(512, 0x5400); // 64: 16 * 64 * 64 = 65536
  std::vector<float> out(256);
  ASSERT_TRUE(launch({.file = kFile, .symbol = "f16_f16_row", .sharedBytes = kStorageBytes}, in, out).ok);
  EXPECT_EQ(out[0], INFINITY);
}

TEST(Wmma, AddressMustBeAMultipleOf32) {
  std::vector<unsigned short> in(512);
  std::vector<float> out(256);
  const KernelRun run = {.file = kFile, .symbol = "f32_f16_row", .sharedBytes = kStorageBytes, .count = 16};
  const Report report = launch(run, in, out);
  expectOnly(report, "misaligned", kFile, "load");
  EXPECT_TRUE(std::isnan(out[0]));
}

TEST(Wmma, StrideMustBeAMultipleOf16Bytes) {
  std::vector<unsigned> none(1);
  expectOnly(launch({.file = kFile, .symbol = "store_stride", .sharedBytes = 2048, .count = 18}, none, none),
             "misaligned", kFile, "stride");
}

TEST(Wmma, AllLanesGiveTheSameAddress) {
  std::vector<unsigned> none(1);
  EXPECT_TRUE(launch({.file = kFile, .symbol = "store_apart", .sharedBytes = 2048}, none, none).ok);
  expectOnly(launch({.file = kFile, .symbol = "store_apart", .sharedBytes = 2048, .count = 32}, none, none),
             "lane-mismatch", kFile, "store");
}

TEST(Wmma, StaysInSharedMemory) {
  std::vector<unsigned> none(1);
  expectOnly(launch({.file = kFile, .symbol = "store_apart", .sharedBytes = 1008}, none, none), "out-of-bounds", kFile,
             "store");
}

} // namespace
} // namespace fagen::emulator::wmmaTest
