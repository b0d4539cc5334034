// fagen: bounds of random masks against asking them for every row and key of small tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// FAGEN_RANDOM_MASKS says how many masks there are; FAGEN_RANDOM_SEED, where they begin.

#include "../Environment.h"
#include "ParsedExpr.h"

#include "fagen/IR/ExprAnalysis.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <random>
#include <vector>

using namespace fagen::ir;
using llvm::StringRef;

namespace {

/// Masks of `k`, `q`, the query's place `q + seq_kv - seq_q` and a run-time number `n`.
class Masks {
public:
  explicit Masks(uint64_t seed) : random(seed) {}
  int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); }

  /// Atoms that bound k by a line of this slope in q: the bounds of a conjunction of them are exact.
  std::string line(int64_t slope) {
    const std::string bound = std::to_string(slope) + " * q + " + end();
    return (draw(0, 1) ? "k " : "k + " + std::to_string(draw(0, 4)) + " ") + compare() + " " + bound;
  }
  std::string conjunctionOfLines() {
    const int64_t slope = draw(-1, 2);
    std::string text = "k < seq_kv";
    for (int64_t count = draw(1, 3); count != 0; --count)
      text += " && " + line(slope);
    return text;
  }

  /// Anything.
  std::string any(unsigned depth) {
    if (depth == 0)
      return atom();
    const std::string a = any(depth - 1), b = any(depth - 1);
    switch (draw(0, 6)) {
    case 0:
      return "!(" + a + ")";
    case 1:
    case 2:
      return "((" + a + ") || (" + b + "))";
    default:
      return "((" + a + ") && (" + b + "))";
    }
  }

private:
  std::string compare() {
    static constexpr const char *kCompares[] = {"<", "<=", ">", ">="};
    return kCompares[draw(0, 3)];
  }
  std::string end() {
    switch (draw(0, 3)) {
    case 0:
      return "seq_kv - seq_q";
    case 1:
      return "n";
    case 2:
      return "seq_kv - n";
    default:
      return std::to_string(draw(-9, 20));
    }
  }
  std::string atom() {
    const std::string c = std::to_string(draw(1, 6));
    switch (draw(0, 9)) {
    case 0:
      return c + " * k " + compare() + " " + std::to_string(draw(-2, 3)) + " * q + " + end();
    case 1:
      return "floor_div(k, " + c + ") " + compare() + " floor_div(q, " + c + ")";
    case 2:
      return "floor_div(k, " + c + ") == floor_div(q + seq_kv - seq_q, " + c + ")";
    case 3:
      return "k == q + " + std::to_string(draw(-3, 3));
    case 4:
      return "k % " + c + " != 0";
    case 5:
      return "q + seq_kv - seq_q - k " + compare() + " n";
    case 6:
      return "min(k, n) " + compare() + " q";
    case 7:
      return "q " + compare() + " " + end();
    default:
      return line(draw(-1, 1));
    }
  }

  std::mt19937_64 random;
};

/// Of key tiles of `width` and one of `rows` rows; `isExact`: the bounds are the best there are.
void compare(const Expr &mask, Values values, int64_t rows, int64_t width, bool isExact) {
  const MaskBounds bounds = analyzeMask(mask, "q", "k", variable("row_begin"), rows);
  const int64_t firstKey = evaluate(bounds.firstKey, values), fullBegin = evaluate(bounds.fullBegin, values);
  const int64_t fullEnd = evaluate(bounds.fullEnd, values), keyEnd = evaluate(bounds.keyEnd, values);
  int64_t firstSeen = 32, lastSeen = -1; // tiles, by their first keys
  std::vector<int64_t> visited;
  std::vector<bool> rowsThatSee(rows);
  for (int64_t begin = 0; begin < 32; begin += width) {
    int64_t seen = 0;
    for (int64_t k = begin; k != begin + width; ++k)
      for (int64_t row = 0; row != rows; ++row) {
        values["k"] = k;
        values["q"] = values["row_begin"] + row;
        const bool sees = evaluate(mask, values) != 0;
        seen += sees;
        rowsThatSee[row] = rowsThatSee[row] || sees;
      }
    const bool isInGap = bounds.hasGap() && begin >= evaluate(bounds.gapBegin, values) &&
                         begin + width <= evaluate(bounds.gapEnd, values);
    const bool isSkipped = begin + width <= firstKey || begin >= keyEnd || isInGap;
    const bool isFull = begin >= fullBegin && begin + width <= fullEnd;
    ASSERT_TRUE(!isSkipped || seen == 0) << "keys from " << begin << " on are skipped, " << seen << " are seen";
    ASSERT_TRUE(!isFull || seen == rows * width) << "keys from " << begin << " on are called full";
    ASSERT_TRUE(!isExact || isFull == (seen == rows * width))
        << "keys from " << begin << " on are seen, not called full";
    if (seen != 0) {
      firstSeen = std::min(firstSeen, begin);
      lastSeen = begin;
    }
    if (!isSkipped)
      visited.push_back(begin);
  }
  // Where each row sees a key, no tile before the first that is seen, or after the last, is visited.
  const bool allSee = std::find(rowsThatSee.begin(), rowsThatSee.end(), false) == rowsThatSee.end();
  for (int64_t begin : visited)
    ASSERT_TRUE(!isExact || !allSee || (begin >= firstSeen && begin <= lastSeen))
        << "keys from " << begin << " on are visited; " << firstSeen << " to " << lastSeen << " are seen";
}

TEST(RandomMasks, TilesAreWhatTheyAreCalled) {
  const uint64_t count = fromEnvironment("FAGEN_RANDOM_MASKS", 3000), first = fromEnvironment("FAGEN_RANDOM_SEED", 1);
  for (uint64_t seed = first; seed != first + count && !::testing::Test::HasFailure(); ++seed) {
    Masks masks(seed);
    const bool isExact = seed % 3 == 0;
    const std::string text = isExact ? masks.conjunctionOfLines() : masks.any(unsigned(masks.draw(0, 3)));
    std::string error;
    const Expr mask = parseExpr(text, error);
    ASSERT_TRUE(mask) << text << ": " << error;
    for (unsigned i = 0; i != 4; ++i) {
      const int64_t rows = masks.draw(1, 8);
      const Values values = {{"row_begin", rows * masks.draw(0, 3)},
                             {"seq_q", masks.draw(1, 24)},
                             {"seq_kv", masks.draw(0, 24)},
                             {"n", masks.draw(0, 24)}};
      SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text);
      compare(mask, values, rows, masks.draw(1, 8), isExact);
    }
  }
  std::printf("tiles of %llu random masks are what they are called\n", static_cast<unsigned long long>(count));
}

} // namespace
