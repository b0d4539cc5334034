// fagen: tests of interval evaluation and monotony, against enumeration.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ParsedExpr.h"
#include "RandomExpr.h"

#include "fagen/IR/ExprAnalysis.h"

#include "gtest/gtest.h"

#include <iostream>
#include <limits>

using namespace fagen::ir;
using llvm::StringRef;

namespace {

std::optional<int64_t> at(const Expr &expr, int64_t a, int64_t b) {
  return expr.evaluate([&](StringRef name) -> std::optional<int64_t> { return name == "a" ? a : b; });
}

std::optional<Interval> rangeOf(StringRef text, Interval a, Interval b) {
  return range(parse(text), [&](StringRef name) -> std::optional<Interval> { return name == "a" ? a : b; });
}

TEST(Range, IsTightWhereVariablesOccurOnce) {
  const Interval a{-3, 5}, b{2, 4};
  const auto expect = [&](StringRef text, int64_t low, int64_t high) {
    const std::optional<Interval> interval = rangeOf(text, a, b);
    ASSERT_TRUE(interval) << text.str();
    EXPECT_EQ(interval->low, low) << text.str();
    EXPECT_EQ(interval->high, high) << text.str();
  };
  expect("a + b", -1, 9);
  expect("a - b", -7, 3);
  expect("a * b", -12, 20);
  expect("floor_div(a, b)", -2, 2);
  expect("ceil_div(a, b)", -1, 3);
  expect("a % b", -3, 3);
  expect("floor_mod(a, b)", 0, 3);
  expect("floor_mod(b, 7)", 2, 4);
  expect("min(a, b)", -3, 4);
  expect("max(a, b)", 2, 5);
  expect("a < b", 0, 1);
  expect("a < 6", 1, 1);
  expect("a > 5", 0, 0);
  expect("b >= 2 && a <= 5", 1, 1);
  expect("b < 2 || a > 5", 0, 0);
}

TEST(Range, GivesNothingWithoutBounds) {
  EXPECT_FALSE(rangeOf("floor_div(a, b)", {0, 1}, {-1, 1})) << "the divisor may be 0";
  EXPECT_FALSE(rangeOf("a * b", {0, int64_t(1) << 40}, {0, int64_t(1) << 40})) << "overflow";
  EXPECT_FALSE(rangeOf("floor_mod(a, b)", {0, 1}, {-2, -1})) << "of divisors that are negative nothing is known";
  for (StringRef text : {"a & b", "a | b", "a ^ b", "a << b", "a >> b"})
    EXPECT_FALSE(rangeOf(text, {0, 3}, {0, 3})) << text.str();
  EXPECT_FALSE(range(parse("x"), [](StringRef) { return std::nullopt; }));
}

TEST(Range, HoldsEveryValue) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  for (int i = 0; i != 5000; ++i) {
    const Expr expr = randomExpr(random, 3, {"a", "b"});
    const int64_t low = int64_t(random() % 9) - 6;
    const Interval interval{low, low + 4};
    const std::optional<Interval> result = range(expr, [&](StringRef) { return interval; });
    for (int64_t a = interval.low; result && a <= interval.high; ++a)
      for (int64_t b = interval.low; b <= interval.high; ++b)
        if (std::optional<int64_t> value = at(expr, a, b)) {
          ASSERT_GE(*value, result->low) << "seed " << seed << ": " << expr.str();
          ASSERT_LE(*value, result->high) << "seed " << seed << ": " << expr.str();
        }
  }
}

TEST(Direction, OfTypicalExpressions) {
  EXPECT_EQ(direction(parse("b + 1"), "a"), Direction::Constant);
  EXPECT_EQ(direction(parse("3 * a - b"), "a"), Direction::NotDecreasing);
  EXPECT_EQ(direction(parse("b - a"), "a"), Direction::NotIncreasing);
  EXPECT_EQ(direction(parse("ceil_div(min(b, a), -2)"), "a"), Direction::NotIncreasing);
  EXPECT_EQ(direction(parse("a < b"), "a"), Direction::NotIncreasing);
  EXPECT_EQ(direction(parse("floor_div(a, heads_per_kv) * kv_heads"), "a"), Direction::NotDecreasing);
  EXPECT_EQ(direction(parse("ceil_div(0 - a, heads_per_kv)"), "a"), Direction::NotIncreasing);
  EXPECT_EQ(direction(parse("floor_div(a, seq_q)"), "a"), Direction::Unknown); // it may be 0
  EXPECT_EQ(direction(parse("a % 3"), "a"), Direction::Unknown);
  EXPECT_EQ(direction(parse("a * b"), "a"), Direction::Unknown);
}

/// The caller promises that values do not fall along the last index, and nothing else.
TEST(Direction, OfReads) {
  EXPECT_EQ(direction(parse("ascending(%t[b, a])"), "a"), Direction::NotDecreasing);
  EXPECT_EQ(direction(parse("ascending(%t[b, min(a, 9)]) + 1"), "a"), Direction::NotDecreasing);
  EXPECT_EQ(direction(parse("ascending(%t[b, 7 - a])"), "a"), Direction::NotIncreasing);
  EXPECT_EQ(direction(parse("ascending(%t[a, b])"), "a"), Direction::Unknown);
  EXPECT_EQ(direction(parse("ascending(%t[a, a])"), "a"), Direction::Unknown);
  EXPECT_EQ(direction(parse("ascending(%t[b, b])"), "a"), Direction::Constant);
  EXPECT_EQ(direction(parse("%t[b, a]"), "a"), Direction::Unknown);
}

TEST(Positive, OfDivisors) {
  for (StringRef text : {"3", "heads_per_kv", "max(n, 1)", "max(2, n)"})
    EXPECT_TRUE(isPositive(parse(text))) << text.str();
  for (StringRef text : {"0", "n", "max(n, 0)", "min(n, 1)", "seq_q", "n + 1"})
    EXPECT_FALSE(isPositive(parse(text))) << text.str();
}

TEST(Difference, OfTheBoundsOfLoops) {
  const auto of = [](const char *a, const char *b) { return difference(parse(a), parse(b)); };
  auto expect = [](std::optional<Interval> found, int64_t low, int64_t high) {
    ASSERT_TRUE(found);
    EXPECT_EQ(found->low, low);
    EXPECT_EQ(found->high, high);
  };
  expect(of("ceil_div(max(a, 0), 64)", "floor_div(max(a, 0), 64)"), 0, 1);
  expect(of("floor_div(max(a, 0), 64)", "ceil_div(max(a, 0), 64)"), -1, 0);
  expect(of("ceil_div(max(min(a, b + a + 128), 0), 32)", "floor_div(max(min(a, b + a + 1), 0), 32)"), 0, 5);
  expect(of("ceil_div(max(min(a, b + a + 16), 0), 64)", "floor_div(max(min(a, b + a + 1), 0), 64)"), 0, 2);
  expect(of("a - b + 3", "a + 1 - b"), 2, 2);
  expect(of("ceil_div(max(a, 0), 64) - floor_div(max(a, 0), 64)", "1"), -1, 0);
  // Packed heads: rows of a tile are that far apart or less in their query.
  expect(of("floor_div(a + 15, heads_per_kv) + b", "floor_div(a, heads_per_kv) + b - 2"), 2, 17);
  expect(of("floor_div(a, heads_per_kv)", "floor_div(a + 15, heads_per_kv)"), -15, 0);
  expect(of("b - floor_div(a, heads)", "b - floor_div(a + 2, heads)"), 0, 2);
  EXPECT_FALSE(of("floor_div(a, heads)", "floor_div(a, kv_heads)"));
  EXPECT_FALSE(of("floor_div(a, heads)", "b"));
  EXPECT_FALSE(of("floor_div(a, heads) + floor_div(a, heads)", "b"));
  EXPECT_FALSE(of("floor_div(a, b)", "floor_div(a + 1, b)"));
  EXPECT_FALSE(of("a", "b"));
  EXPECT_FALSE(of("ceil_div(a, 64)", "ceil_div(a, 32)"));
  EXPECT_FALSE(of("ceil_div(a, b)", "ceil_div(a + 1, b)"));
  EXPECT_FALSE(of("min(a, b)", "max(a, b)"));
}

TEST(Difference, OfNumbersWhoseSumsCouldOverflow) {
  const Expr a = variable("a");
  for (const int64_t far : {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max(), int64_t(1) << 31})
    EXPECT_FALSE(difference(a + constant(far), a)) << far;
  EXPECT_TRUE(difference(a + constant((int64_t(1) << 31) - 1), a));
}

TEST(Difference, HoldsEveryValue) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  unsigned known = 0;
  for (int i = 0; i != 5000; ++i) {
    const int64_t k = int64_t(random() % 5) + 1;
    const Expr inner = randomExpr(random, 1, {"a", "b"});
    auto variation = [&] {
      const Expr sum = inner + constant(int64_t(random() % 9) - 4);
      const Expr bounded = i % 2 ? max(sum, constant(0)) : min(variable("b"), sum);
      return random() % 2 ? ceilDiv(bounded, constant(k)) : floorDiv(bounded, constant(k));
    };
    const Expr x = variation(), y = variation();
    const std::optional<Interval> apart = difference(x, y);
    known += apart.has_value();
    for (int64_t a = -7; a <= 7 && apart; ++a)
      for (int64_t b = -7; b <= 7; ++b)
        if (const std::optional<int64_t> here = at(x - y, a, b)) {
          ASSERT_LE(apart->low, *here) << "seed " << seed << ": " << x.str() << " - " << y.str();
          ASSERT_GE(apart->high, *here) << "seed " << seed << ": " << x.str() << " - " << y.str();
        }
  }
  EXPECT_GT(known, 500u);
}

TEST(Direction, AgreesWithEnumeration) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  for (int i = 0; i != 5000; ++i) {
    const Expr expr = randomExpr(random, 3, {"a", "b"});
    const Direction moves = direction(expr, "a");
    const int64_t b = int64_t(random() % 11) - 5;
    for (int64_t a = -5; a <= 5 && moves != Direction::Unknown; ++a) {
      const std::optional<int64_t> here = at(expr, a, b), next = at(expr, a + 1, b);
      if (!here || !next)
        continue;
      if (moves != Direction::NotIncreasing) {
        ASSERT_LE(*here, *next) << "seed " << seed << ": " << expr.str() << " at " << a << ", " << b;
      }
      if (moves != Direction::NotDecreasing) {
        ASSERT_GE(*here, *next) << "seed " << seed << ": " << expr.str() << " at " << a << ", " << b;
      }
    }
  }
}

} // namespace
