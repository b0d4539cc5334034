// fagen: steps of the online softmax without a maximum: when a warp does one again, and what comes out in either case.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Kernels.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace fagen::emulator::settleTest {
namespace {

constexpr int kRows = 16, kKeys = 32, kHeadDim = 64;

struct SettleArguments {
  const uint16_t *q, *k;
  const std::array<float, 2> *rows;
  float *terms, *alpha, *mOut, *lOut, *isRedone;
  int seen;
};

/// The bits of a value that f16 holds exactly, as a normal number, 0 or infinity.
uint16_t halfBits(float value) {
  if (value == 0)
    return 0;
  if (std::isinf(value))
    return value < 0 ? 0xfc00 : 0x7c00;
  int exponent = 0;
  const float fraction = std::frexp(std::abs(value), &exponent);
  return static_cast<uint16_t>((value < 0 ? 0x8000 : 0) | (exponent + 14) << 10 | (int(fraction * 2048) & 1023));
}
uint16_t bfloatBits(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16); }

/// What becomes of a step: its terms stay, come down by a factor, or are computed from scores again.
enum class Outcome { Kept, Lowered, Again };

/// Scores of one warp's rows, what the rows had before, and what settle_rows makes of it.
struct Step {
  std::vector<float> scores = std::vector<float>(kRows * kKeys);
  std::vector<float> m = std::vector<float>(kRows), l = std::vector<float>(kRows, 3.0f);
  std::vector<float> terms = std::vector<float>(kRows * kKeys);
  std::vector<float> alpha = std::vector<float>(kRows), mOut = alpha, lOut = alpha, isRedone = alpha;
  int seen = kKeys; ///< keys of row 0; each row sees one more than the one above

  Step() { // small ones, no two rows alike
    for (int i = 0; i < kRows * kKeys; ++i)
      scores[i] = float(i * 37 % 23) / 2 - 10;
  }
  float &score(int row, int key) { return scores[row * kKeys + key]; }

  void run(const std::string &symbol) {
    const bool isHalf = symbol != "settle_bf16";
    lowered = isHalf ? 1 : std::exp2(-20.0);
    std::vector<uint16_t> q(kRows * kHeadDim), k(kKeys * kHeadDim);
    const auto bits = isHalf ? halfBits : bfloatBits;
    for (int row = 0; row < kRows; ++row) { // each row looks at a column of its own, in all slices
      const int column = row % 4 * 16 + row;
      q[row * kHeadDim + column] = bits(1);
      for (int key = 0; key < kKeys; ++key)
        k[key * kHeadDim + column] = bits(score(row, key));
    }
    std::vector<std::array<float, 2>> rows(kRows);
    for (int row = 0; row < kRows; ++row)
      rows[row] = {m[row], l[row]};
    Launch launch = {symbol, 1, 32, 8192, {}};
    const auto add = [&](const auto &of, bool isWritable, const char *name) {
      launch.buffers.push_back({of.data(), of.size() * sizeof(of[0]), isWritable, name});
    };
    add(q, false, "q"), add(k, false, "k"), add(rows, false, "rows");
    add(terms, true, "terms"), add(alpha, true, "alpha"), add(mOut, true, "m_out"), add(lOut, true, "l_out");
    add(isRedone, true, "is_redone");
    const SettleArguments arguments = {q.data(),    k.data(),    rows.data(),     terms.data(), alpha.data(),
                                       mOut.data(), lOut.data(), isRedone.data(), seen};
    const Report report = kernels("settle.cu").launch(launch, &arguments, sizeof(arguments), {});
    ASSERT_TRUE(report.ok) << text(report);
    for (int row = 0; row < kRows; ++row)
      for (int key = row + seen; key < kKeys; ++key)
        score(row, key) = -INFINITY; // as expectations see it
  }

  double largest(int row) const {
    return *std::max_element(scores.begin() + row * kKeys, scores.begin() + (row + 1) * kKeys);
  }

  /// The row's part of the softmax is right, whatever it is by: terms, sum, and the factor of what was before.
  void expectSoftmax(int row) const {
    const double top = std::max<double>(m[row], largest(row));
    const double before = l[row] * std::exp2(m[row] - top);
    double sum = before;
    for (int key = 0; key < kKeys; ++key)
      sum += std::exp2(scores[row * kKeys + key] - top);
    for (int key = 0; key < kKeys; ++key)
      EXPECT_NEAR(terms[row * kKeys + key] / lOut[row], std::exp2(scores[row * kKeys + key] - top) / sum, 1e-6)
          << row << " " << key;
    EXPECT_NEAR(double(l[row]) * alpha[row] / lOut[row], before / sum, 1e-6) << row;
    EXPECT_NEAR(mOut[row] + std::log2(lOut[row]), top + std::log2(sum), 1e-5) << row;
  }

  /// What terms of a row that has outgrown its maximum add up to, as run() found it.
  double lowered = 1;

  /// All rows of the warp come down or are done again, or none is.
  void expect(Outcome outcome, double bound) const {
    for (int row = 0; row < kRows; ++row) {
      EXPECT_EQ(isRedone[row], outcome == Outcome::Kept ? 0 : 1) << row;
      const double base = outcome == Outcome::Again ? std::max<double>(m[row], largest(row)) : m[row];
      const double growth = outcome == Outcome::Kept ? 0 : std::max(0.0, std::log2(sumBy(base, row) / lowered));
      EXPECT_NEAR(mOut[row], base + growth, 1e-4) << row;
      EXPECT_NEAR(alpha[row], std::exp2(m[row] - mOut[row]), 1e-6) << row;
      for (int key = 0; key < kKeys; ++key)
        EXPECT_LE(terms[row * kKeys + key], outcome == Outcome::Kept ? bound : 1.00001) << row << " " << key;
      expectSoftmax(row);
    }
  }

  double sumBy(double base, int row) const {
    double sum = 0;
    for (int key = 0; key < kKeys; ++key)
      sum += std::exp2(scores[row * kKeys + key] - base);
    return sum;
  }
};

/// By the kernel; the mixed one has every second term, of odd keys, by polynomial.
class Settle : public testing::TestWithParam<const char *> {
protected:
  /// What a thread's terms of a row may add up to, as a power of two.
  static int boundBits() { return std::string(GetParam()) == "settle_bf16" ? 40 : 15; }

  static void expect(Step step, Outcome outcome) {
    ASSERT_NO_FATAL_FAILURE(step.run(GetParam()));
    step.expect(outcome, std::exp2(boundBits()));
  }
};

TEST_P(Settle, OldMaximumIsKeptWhileItWillDo) {
  expect({}, Outcome::Kept);
  Step larger; // and in a row of its own maximum
  larger.score(3, 9) = boundBits() - 1;
  larger.m[11] = -4;
  larger.score(11, 31) = boundBits() - 5;
  expect(larger, Outcome::Kept);
}

TEST_P(Settle, OneKeyThatOutgrowsItBringsTheWarpDown) {
  for (const int row : {0, 6, 15})
    for (const float score : {boundBits() + 1.0f, boundBits() + 6.0f, 98.0f}) {
      Step step;
      step.score(row, 13 + row) = score;
      expect(step, Outcome::Lowered);
    }
}

/// Above that a sum is not trusted, though it may still be finite: 2^104.
TEST_P(Settle, OneKeyFarAboveMakesTheWarpStartAgain) {
  for (const int row : {0, 6, 15})
    for (const float score : {104.0f, 200.0f}) { // 2^200 is no float
      Step step;
      step.score(row, 13 + row) = score;
      step.score((row + 3) % kRows, 2) = 50; // next to one that could come down
      expect(step, Outcome::Again);
    }
}

TEST_P(Settle, ManySmallKeysOutgrowItTogether) {
  Step step; // of a thread 8 terms
  for (int key = 0; key < kKeys; ++key)
    step.score(9, key) = boundBits() - 2.5f;
  expect(step, Outcome::Lowered);
  for (int key = 0; key < kKeys; ++key)
    step.score(9, key) = boundBits() - 3.5f;
  expect(step, Outcome::Kept);
}

TEST_P(Settle, TheBoundItselfWillDo) {
  Step step; // one thread has keys 0, 1, 8, 9, ...
  for (int key = 0; key < kKeys; ++key)
    step.score(5, key) = -100;
  step.score(5, 8) = boundBits();
  expect(step, Outcome::Kept);
  step.score(5, 2) = boundBits() - 20; // another thread's
  expect(step, Outcome::Kept);
  step.score(5, 9) = boundBits() - 20;
  expect(step, Outcome::Lowered);
}

/// Others of the warp that add up to less keep theirs.
TEST_P(Settle, RowsComeDownByWhatTheyHaveGrown) {
  Step step;
  for (int row = 0; row < kRows; ++row)
    step.score(row, 3) = 3.0f * row; // up to 2^45
  for (int key = 0; key < kKeys; ++key)
    step.score(0, key) = -40; // too little to come down
  ASSERT_NO_FATAL_FAILURE(step.run(GetParam()));
  step.expect(Outcome::Lowered, 0);
  EXPECT_EQ(step.mOut[0], step.m[0]);
  EXPECT_EQ(step.alpha[0], 1);
  EXPECT_GT(step.mOut[9], step.m[9] + 20);
}

TEST_P(Settle, ARowThatHasSeenNoKeyStartsHere) {
  Step step;
  step.m[7] = -INFINITY;
  step.l[7] = 0;
  ASSERT_NO_FATAL_FAILURE(step.run(GetParam()));
  EXPECT_EQ(step.alpha[7], 0);
  step.expect(Outcome::Again, 0);
  for (int row = 0; row < kRows; ++row)
    step.m[row] = -INFINITY, step.l[row] = 0;
  expect(step, Outcome::Again);
}

TEST_P(Settle, KeysThatARowDoesNotSeeStayMasked) {
  for (const Outcome outcome : {Outcome::Kept, Outcome::Lowered, Outcome::Again}) {
    Step step;
    step.seen = 9;
    for (int row = 0; row < kRows; ++row)
      for (int key = row + step.seen; key < kKeys; ++key)
        step.score(row, key) = 130;
    if (outcome != Outcome::Kept)
      step.score(2, 10) = outcome == Outcome::Lowered ? 60 : 125; // the last one that it sees
    expect(step, outcome);
  }
}

/// Scores of -inf leave such a row as it is. Times Q's zeros they are no number: so are other rows, and stay so.
TEST_P(Settle, ScoresThatAreNoNumbers) {
  Step step;
  step.m[4] = -INFINITY;
  step.l[4] = 0;
  for (int key = 0; key < kKeys; ++key)
    step.score(4, key) = -INFINITY;
  ASSERT_NO_FATAL_FAILURE(step.run(GetParam()));
  for (int row = 0; row < kRows; ++row) {
    EXPECT_EQ(step.isRedone[row], 1) << row;
    EXPECT_EQ(std::isnan(step.lOut[row]), row != 4) << row;
    EXPECT_EQ(std::isnan(step.terms[row * kKeys]), row != 4) << row;
  }
  EXPECT_EQ(step.mOut[4], -INFINITY);
  EXPECT_EQ(step.lOut[4], 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Settle, testing::Values("settle_f16", "settle_bf16", "settle_f16_mixed"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace fagen::emulator::settleTest
