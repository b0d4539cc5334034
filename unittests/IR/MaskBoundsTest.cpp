// fagen: tests of analyzeMask against asking the predicate for every row and key.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/ExprAnalysis.h"

#include "ParsedExpr.h"

#include "llvm/ADT/STLExtras.h"

#include "gtest/gtest.h"

#include <array>
#include <map>

using namespace fagen::ir;
using llvm::StringRef;

namespace {

constexpr int64_t kRows = 8;
constexpr int64_t kKeys = 40; // more than any predicate below can see

/// How many of the tile's rows see the key.
int64_t rowsThatSee(const Expr &predicate, int64_t key, Values values) {
  int64_t count = 0;
  for (int64_t row = 0; row != kRows; ++row) {
    values["q"] = values["row_begin"] + row;
    values["k"] = key;
    count += evaluate(predicate, values) != 0;
  }
  return count;
}

bool isInGap(const MaskBounds &bounds, int64_t key, const Values &values) {
  return bounds.hasGap() && key >= evaluate(bounds.gapBegin, values) && key < evaluate(bounds.gapEnd, values);
}

/// Compares with brute force. `exact`: the bounds are not only safe, but the best there are.
void check(StringRef text, const Values &values, bool exact) {
  const Expr predicate = parse(text);
  const MaskBounds bounds = analyzeMask(predicate, "q", "k", variable("row_begin"), kRows);
  const int64_t firstKey = evaluate(bounds.firstKey, values), fullBegin = evaluate(bounds.fullBegin, values);
  const int64_t fullEnd = evaluate(bounds.fullEnd, values), keyEnd = evaluate(bounds.keyEnd, values);
  for (int64_t key = 0; key != kKeys; ++key) {
    const int64_t rows = rowsThatSee(predicate, key, values);
    SCOPED_TRACE(text.str() + ", key " + std::to_string(key) + ", " + std::to_string(rows) + " rows see it; bounds " +
                 bounds.firstKey.str() + " | " + bounds.fullBegin.str() + " | " + bounds.fullEnd.str() + " | " +
                 bounds.keyEnd.str());
    const bool inFull = key >= fullBegin && key < fullEnd, inKeys = key >= firstKey && key < keyEnd;
    if (inFull) {
      ASSERT_EQ(rows, kRows);
    }
    if (!inKeys || isInGap(bounds, key, values)) {
      ASSERT_EQ(rows, 0);
    }
    if (exact) {
      ASSERT_EQ(inFull, rows == kRows);
    }
  }
}

void checkAll(StringRef text, bool exact) {
  for (int64_t rowBegin : {0, 8, 16})
    for (int64_t seqQ : {1, 7, 16, 20})
      for (int64_t seqKv : {0, 1, 5, 16, 23})
        check(text, {{"row_begin", rowBegin}, {"seq_q", seqQ}, {"seq_kv", seqKv}}, exact);
}

TEST(MaskBounds, Lengths) { checkAll("k < seq_kv", true); }
TEST(MaskBounds, Causal) { checkAll("k < seq_kv && k <= q + seq_kv - seq_q", true); }
TEST(MaskBounds, StrictAndTurnedRound) {
  checkAll("seq_kv > k && q + seq_kv - seq_q > k", true);
  checkAll("seq_kv >= k + 1 && 0 <= q - k", true);
}
TEST(MaskBounds, SlidingWindow) {
  checkAll("k < seq_kv && k <= q && k >= q - 5", true);
  checkAll("k < seq_kv && k > q - 6", true);
  checkAll("k <= q + 2 && q < k + 4", true);
}
TEST(MaskBounds, FallingInRows) { checkAll("k < 30 - q && k >= 10 - q", true); }
TEST(MaskBounds, Slopes) {
  checkAll("k < seq_kv && 3 * k <= 2 * q + 7", true);
  checkAll("k < seq_kv && 3 * k < q * 2", true);
  checkAll("k < seq_kv && 2 * k >= q + 1 && 2 * k > q - 5", true);
  checkAll("k - 1 <= q + q + 3 - (q - 2)", true);
}
TEST(MaskBounds, OneDiagonal) { checkAll("k < seq_kv && k == q + 1", true); }
TEST(MaskBounds, OtherTermsMayBeAnything) { checkAll("k < min(seq_kv, 2 * seq_q) && k <= q + seq_kv % 5", true); }

TEST(MaskBounds, PackedHeads) {
  for (int64_t heads : {1, 2, 3, 4, 7, 8, 16})
    for (int64_t rowBegin : {0, 8, 16, 40})
      for (int64_t seqQ : {1, 3, 7, 16})
        for (int64_t seqKv : {0, 1, 5, 16, 23})
          for (StringRef text : {"k < seq_kv && k <= floor_div(q, heads_per_kv) + seq_kv - seq_q",
                                 "k < seq_kv && k >= floor_div(q, heads_per_kv) - 2",
                                 "k < 30 - 2 * floor_div(q, heads_per_kv) && k > 9 - floor_div(q, heads_per_kv)"})
            check(text, {{"row_begin", rowBegin}, {"heads_per_kv", heads}, {"seq_q", seqQ}, {"seq_kv", seqKv}}, true);
}

TEST(MaskBounds, MonotoneInRows) {
  checkAll("k < min(q, seq_kv)", true);
  checkAll("k < seq_kv && k <= q + min(q, 9)", true);
  checkAll("k < seq_kv - max(q - 3, 0)", true);
}

TEST(MaskBounds, UnknownConjunctsAreSafe) {
  checkAll("k < seq_kv && (k < 4 || k % 3 == q)", false);
  checkAll("k < seq_kv && k % 2 == 0", false);
  checkAll("k < seq_kv && q < seq_q", false);
  checkAll("k < seq_kv && k != q", false);
  checkAll("k < max(0 - q, q - 9)", false);
  checkAll("k < floor_div(q, seq_kv + 1)", false);
}

TEST(MaskBounds, Windows) {
  checkAll("k < seq_kv && k <= q + seq_kv - seq_q && q + seq_kv - seq_q - k < 5", true);
  checkAll("k < seq_kv && (q < k ? k - q : q - k) < 5", false);
  checkAll("k < seq_kv && q - 12 < k && k < q - 6", true);
}

/// Where all alternatives begin or end together the bounds are the best there are.
TEST(MaskBounds, Alternatives) {
  checkAll("k < seq_kv && (k < 4 || k <= q)", true);
  checkAll("k < seq_kv && (k >= 20 || k > q)", true);
  checkAll("k < 3 || k < q || k < 9", true);
  checkAll("k < seq_kv && (k < 4 || q - k < 5)", false);
  checkAll("k < seq_kv && k <= q && (k < 4 || q - k < 5)", false);
  checkAll("k == q || k == q - 12", false);
  checkAll("k < seq_kv && (k < 6 || k % 5 == 0)", false);
  checkAll("k < seq_kv && (k % 5 == 0 || k < 6)", false);
  checkAll("0 || k < q", true);
  checkAll("k < q || 1", true);
}

TEST(MaskBounds, Negations) {
  checkAll("!(k > q)", true);
  checkAll("!(k >= q)", true);
  checkAll("k < seq_kv && !(k < q - 5) && !(k <= q - 6)", true);
  checkAll("k < seq_kv && !(k <= q - 6)", true);
  checkAll("!!(k <= q)", true);
  checkAll("k < seq_kv && !(k < 4 || k < q)", true);
  checkAll("k < seq_kv && !(k >= 4 && k > q)", true);
  checkAll("k < seq_kv && !(k == q)", false);
  checkAll("k < seq_kv && !(k % 2 == 0)", false);
  checkAll("k < seq_kv && !(k < q && k % 2)", false);
}

TEST(MaskBounds, Chunks) {
  checkAll("k < seq_kv && floor_div(k, 4) == floor_div(q, 4)", true);
  checkAll("k < seq_kv && floor_div(k, 5) == floor_div(q + seq_kv - seq_q, 5)", true);
  for (StringRef text : {"floor_div(k, 3) < floor_div(q, 3)", "floor_div(k, 3) <= floor_div(q, 3)",
                         "floor_div(q, 3) <= floor_div(k, 3)", "floor_div(q, 3) < floor_div(k, 3)",
                         "floor_div(k + 2, 3) > q - 4", "floor_div(k, max(seq_q, 1)) < q", "floor_div(2 * k, 3) < q"})
    checkAll("k < seq_kv && " + text.str(), true);
  checkAll("k < seq_kv && floor_div(k, seq_q - 3) < q", false);
  checkAll("k < seq_kv && floor_div(0 - k, 4) == 0 - q", false);
  checkAll("k < seq_kv && floor_div(k, -2) < -3", false);
}

/// Four numbers: the first key of some row, of all, and the ends of both.
TEST(MaskBounds, AreTheseNumbers) {
  const auto expect = [](StringRef text, const std::array<int64_t, 4> expected) {
    const MaskBounds bounds = analyzeMask(parse(text), "q", "k", variable("row_begin"), kRows);
    std::array<int64_t, 4> found{};
    llvm::transform(llvm::ArrayRef{bounds.firstKey, bounds.fullBegin, bounds.fullEnd, bounds.keyEnd}, found.begin(),
                    [](const Expr &bound) { return evaluate(bound, {{"row_begin", 16}}); });
    EXPECT_EQ(found, expected) << text.str();
  };
  constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
  expect("k <= q", {0, 0, 17, 24});
  expect("k <= q && q - k < 5", {12, 19, 17, 24});
  expect("k < 99 && q - k < 5", {12, 19, 99, 99});
  expect("k < 99 && (k < 6 || q - k < 5)", {0, 19, 99, 99}); // those of the window are more
  expect("k < 20 || k <= q", {0, 0, 20, 24});
  expect("k % 5 == 0 || k < 6", {0, 0, 6, kAll});
  expect("k < 6 || k % 5 == 0", {0, 0, 6, kAll});
  expect("k % 5 == 0 || k >= 20", {0, 20, kAll, kAll});
  expect("k >= 20 || k % 5 == 0", {0, 20, kAll, kAll});
  expect("!(k < q)", {16, 23, kAll, kAll});
  expect("floor_div(k, 10) == floor_div(q, 10)", {10, 20, 20, 30});
  expect("floor_div(k, 32) == floor_div(q, 32)", {0, 0, 32, 32});
  expect("k % 2 == 0 && k <= q", {0, 0, 0, 24});
  expect("k <= q && k % 2 == 0", {0, 0, 0, 24});
}

/// An unknown conjunct before a bound leaves none as the number 0, by which passes know it.
TEST(MaskBounds, NoneIsANumber) {
  for (StringRef text : {"k % 2 == 0 && k <= q", "k <= q && k % 2 == 0", "k % 2 == 0 && (k <= q || k < 4)"})
    EXPECT_EQ(analyzeMask(parse(text), "q", "k", variable("row_begin"), kRows).fullEnd.str(), "0") << text.str();
}

/// Between the first keys and those that follow the rows no row may see any.
TEST(MaskBounds, Gaps) {
  const auto expect = [](StringRef text, std::optional<std::pair<int64_t, int64_t>> gap) {
    const MaskBounds bounds = analyzeMask(parse(text), "q", "k", variable("row_begin"), 8);
    const Values values = {{"row_begin", 16}};
    ASSERT_EQ(bounds.hasGap(), gap.has_value()) << text.str();
    if (gap) {
      EXPECT_EQ(evaluate(bounds.gapBegin, values), gap->first) << text.str();
      EXPECT_EQ(evaluate(bounds.gapEnd, values), gap->second) << text.str();
    }
  };
  expect("k <= q && (k < 4 || q - k < 5)", {{4, 12}});
  expect("k <= q && (q - k < 5 || k < 4)", {{4, 12}});
  expect("(k < 4 || q - k < 5 && k % 2 == 0) && k <= q", {{4, 12}});
  expect("k % 3 == 0 && (k < 4 || k % 2 == 0 && k >= q)", {{4, 16}});
  expect("k < 4 || k <= q", std::nullopt);
  expect("k < 4 || k % 5 == 0", std::nullopt);
  expect("k <= q && q - k < 5", std::nullopt);
}

TEST(MaskBounds, Constants) {
  checkAll("1", true);
  checkAll("0", true);
}

TEST(MaskBounds, ReadsWell) {
  const MaskBounds bounds =
      analyzeMask(parse("k < seq_kv && k <= q + seq_kv - seq_q"), "q", "k", variable("row_begin"), 128);
  EXPECT_EQ(bounds.firstKey.str(), "0");
  EXPECT_EQ(bounds.fullBegin.str(), "0");
  EXPECT_EQ(bounds.fullEnd.str(), "min(seq_kv, row_begin + seq_kv - seq_q + 1)");
  EXPECT_EQ(bounds.keyEnd.str(), "min(seq_kv, row_begin + seq_kv - seq_q + 128)");
  const MaskBounds prefix = analyzeMask(parse("k < n || q <= k"), "q", "k", variable("row_begin"), 128);
  EXPECT_EQ(prefix.firstKey.str(), "0");
  EXPECT_EQ(prefix.keyEnd.str(), "9223372036854775807");
}

} // namespace
