// fagen: tests of expressions: folding, printing, parsing, evaluation.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "ParsedExpr.h"
#include "RandomExpr.h"

#include "gtest/gtest.h"

#include <cmath>
#include <iostream>
#include <map>

using namespace fagen::ir;
using llvm::StringRef;

namespace {

/// The text after one trip through the parser and the factories.
std::string folded(StringRef text) { return parse(text).str(); }

std::optional<int64_t> resultOf(StringRef text, const Values &values = {}) { return valueOf(parse(text), values); }

TEST(Expr, PrintsParenthesesByPrecedenceOnly) {
  for (StringRef text :
       {"a + b * c", "(a + b) * c", "a - (b - c)", "a - b - c", "a * (b % c)", "a * b % c", "a < b && c <= d",
        "(a < b) == (c < d)", "(a && b) || c", "a && (b || c)", "a && b && c", "min(a + 1, b) - max(c, d)",
        "floor_div(a, ceil_div(b, 2))", "a + 1 < b - 1", "0 - a", "-5 * a"})
    EXPECT_EQ(folded(text), text.str());
}

TEST(Expr, DropsParenthesesThatChangeNothing) {
  EXPECT_EQ(folded("((a)) + (b * c)"), "a + b * c");
  EXPECT_EQ(folded("(a - b) - c"), "a - b - c");
  EXPECT_EQ(folded("-a"), "0 - a");
  EXPECT_EQ(folded("a && b || c"), "(a && b) || c");
}

/// What compilers warn about has parentheses: all but names, numbers and calls next to an operator of bits.
TEST(Expr, PrintsOperatorsOfBits) {
  for (StringRef text : {"a & b", "(a & b) == c", "a | (b ^ (c & 1))", "(a | b) | c", "a << (b + 1)", "(a << 2) + b",
                         "(a >> 3) & -1", "min(a, b) ^ floor_mod(a, b)", "!(a & 1)", "floor_mod(a - 1, b) < 2"})
    EXPECT_EQ(folded(text), text.str());
  EXPECT_EQ(folded("a & b == c"), "a & (b == c)") << "as in C";
  EXPECT_EQ(folded("a | b ^ c & d"), "a | (b ^ (c & d))");
  EXPECT_EQ(folded("a << b + 1 < c"), "(a << (b + 1)) < c");
  EXPECT_EQ(folded("a && b | c"), "a && (b | c)");
}

TEST(Expr, FoldsBits) {
  EXPECT_EQ(folded("!1"), "0");
  EXPECT_EQ(folded("!(3 < 2)"), "1");
  EXPECT_EQ(folded("1.5 < 0.5"), "0");
  EXPECT_EQ(folded("0.1 >= 0.1 && a < b"), "a < b");
  EXPECT_EQ(folded("6 & 3"), "2");
  EXPECT_EQ(folded("6 | 3"), "7");
  EXPECT_EQ(folded("6 ^ 3"), "5");
  EXPECT_EQ(folded("3 << 4"), "48");
  EXPECT_EQ(folded("-9 >> 1"), "-5") << "the sign stays";
  EXPECT_EQ(folded("1 << 31"), "2147483648");
  EXPECT_EQ(folded("floor_mod(-7, 3)"), "2");
  EXPECT_EQ(folded("floor_mod(7, -3)"), "-2");
  EXPECT_EQ(folded("floor_mod(-6, 3)"), "0");
  EXPECT_EQ(folded("floor_mod(a, 1)"), "0");
  for (StringRef text : {"1 << 32", "1 << -1", "1 >> 32", "4611686018427387904 << 1", "floor_mod(1, 0)"})
    EXPECT_EQ(folded(text), text.str()) << "it has no value";
}

TEST(Expr, PrintsReads) {
  for (StringRef text :
       {"%t[a]", "%t[a, b + 1]", "%t[min(a, n - 1), 0] * 2", "%t[%u[a], %u[b]] < c", "ascending(%t[a])"})
    EXPECT_EQ(folded(text), text.str());
  EXPECT_EQ(folded("%t[2 + 3,a ]"), "%t[5, a]");
  EXPECT_EQ(parseError("%t["), "expected an expression");
  EXPECT_EQ(parseError("%t[]"), "expected an expression");
  EXPECT_EQ(parseError("%t[a"), "expected ']'");
  EXPECT_EQ(parseError("%t[a,]"), "expected an expression");
  EXPECT_EQ(parseError("t[a]"), "unexpected '[a]' after the expression");
}

TEST(Expr, AReadIsOfItsBufferAtItsIndices) {
  const Expr read = parse("%t[a, b + 1]");
  EXPECT_EQ(read, Expr::read("t", {variable("a"), variable("b") + constant(1)}));
  EXPECT_EQ(read.operands().front().name(), "%t");
  EXPECT_EQ(read.indices().size(), 2u);
  EXPECT_FALSE(parse("%t[a]").isBinary()) << "a buffer and an index are no two operands";
  EXPECT_EQ(read.substitute("b", constant(2)).str(), "%t[a, 3]");
  EXPECT_EQ(parse("%t[a]").substitute("a", parse("c - 1")).str(), "%t[c - 1]");
  EXPECT_TRUE(read.uses("b"));
  EXPECT_TRUE(read.uses("%t"));
  EXPECT_FALSE(isOfIntegers(read)) << "no loop may be bounded by it";
}

TEST(Expr, OfPlacesNamesNoElement) {
  EXPECT_TRUE(isOfPlaces(parse("k < n && %t[q, k] == 3")));
  EXPECT_FALSE(isOfPlaces(parse("%s < 2")));
  EXPECT_FALSE(isOfPlaces(parse("k < n && %t[%s] == 3")));
}

TEST(Expr, FoldsConstants) {
  EXPECT_EQ(folded("2 + 3 * 4 - -1"), "15");
  EXPECT_EQ(folded("a + 0"), "a");
  EXPECT_EQ(folded("0 + a"), "a");
  EXPECT_EQ(folded("a - a"), "0");
  EXPECT_EQ(folded("a * 1 + b * 0"), "a");
  EXPECT_EQ(folded("a + 2 - 1"), "a + 1");
  EXPECT_EQ(folded("a + 1 - 1"), "a");
  EXPECT_EQ(folded("a + 1 - 3"), "a - 2");
  EXPECT_EQ(folded("a + -5"), "a - 5");
  EXPECT_EQ(folded("a - -5"), "a + 5");
  EXPECT_EQ(folded("floor_div(a, 1) + a % 1"), "a");
  EXPECT_EQ(folded("min(a, a)"), "a");
  EXPECT_EQ(folded("min(min(a, b), a)"), "min(a, b)");
  EXPECT_EQ(folded("min(a, 9223372036854775807)"), "a");
  EXPECT_EQ(folded("1 && a < b"), "a < b");
  EXPECT_EQ(folded("0 && a"), "0");
  EXPECT_EQ(folded("a < b || 1"), "1");
  EXPECT_EQ(folded("1 && a"), "1 && a") << "a may be neither 0 nor 1";
}

TEST(Expr, KeepsWhatHasNoValue) {
  EXPECT_EQ(folded("floor_div(1, 0)"), "floor_div(1, 0)");
  EXPECT_EQ(folded("1 % 0"), "1 % 0");
  EXPECT_EQ(folded("9223372036854775807 + 1"), "9223372036854775807 + 1");
  EXPECT_EQ(resultOf("floor_div(a, b)", {{"a", 1}, {"b", 0}}), std::nullopt);
  EXPECT_EQ(resultOf("a * a", {{"a", int64_t(1) << 32}}), std::nullopt);
  EXPECT_EQ(resultOf("floor_div(a, b)", {{"a", std::numeric_limits<int64_t>::min()}, {"b", -1}}), std::nullopt);
}

TEST(Expr, DividesTowardsTheNamedSide) {
  for (int64_t a = -9; a <= 9; ++a)
    for (int64_t b : {-4, -3, -1, 1, 2, 4}) {
      const std::map<std::string, int64_t> values{{"a", a}, {"b", b}};
      EXPECT_EQ(resultOf("floor_div(a, b)", values), int64_t(std::floor(double(a) / double(b))));
      EXPECT_EQ(resultOf("ceil_div(a, b)", values), int64_t(std::ceil(double(a) / double(b))));
      EXPECT_EQ(resultOf("a % b", values), a % b) << "as in C";
      EXPECT_EQ(resultOf("floor_mod(a, b) + b * floor_div(a, b)", values), a);
    }
}

TEST(Expr, EvaluatesLogicLikeC) {
  EXPECT_EQ(resultOf("a != 0 && floor_div(8, a) == 4", {{"a", 0}}), 0);
  EXPECT_EQ(resultOf("a == 0 || floor_div(8, a) == 4", {{"a", 0}}), 1);
  EXPECT_EQ(resultOf("a && 1", {{"a", 7}}), 1);
  EXPECT_EQ(resultOf("missing + 1"), std::nullopt);
}

TEST(Expr, Substitutes) {
  EXPECT_EQ(parse("j + 1 < n").substitute("j", parse("j + 2")).str(), "j + 3 < n");
  EXPECT_EQ(parse("j * k").substitute("j", constant(0)).str(), "0");
  EXPECT_EQ(parse("a + b").substitute("a", parse("b - 1")).str(), "b - 1 + b");
  EXPECT_TRUE(parse("a + b").uses("b"));
  EXPECT_FALSE(parse("a + b").uses("j"));
}

TEST(Expr, ComparesByStructure) {
  EXPECT_EQ(parse("a + b * 2"), variable("a") + variable("b") * constant(2));
  EXPECT_FALSE(parse("a + b") == parse("b + a"));
  EXPECT_FALSE(parse("a") == Expr());
  EXPECT_TRUE(Expr() == Expr());
}

TEST(Expr, RefusesWhatIsNoExpression) {
  EXPECT_EQ(parseError(""), "expected an expression");
  EXPECT_EQ(parseError("a +"), "expected an expression");
  EXPECT_EQ(parseError("a b"), "unexpected 'b' after the expression");
  EXPECT_EQ(parseError("(a"), "expected ')'");
  EXPECT_EQ(parseError("min(a)"), "expected ','");
  EXPECT_EQ(parseError("min"), "expected '('");
  EXPECT_EQ(parseError("12x"), "malformed number '12x'");
  EXPECT_EQ(parseError("9223372036854775808"), "number '9223372036854775808' does not fit in 64 bits");
  EXPECT_EQ(parse("-9223372036854775808").value(), std::numeric_limits<int64_t>::min());
}

TEST(Expr, LimitsDepth) {
  const std::string limit = "expression is nested deeper than 200";
  EXPECT_EQ(parseError(std::string(100000, '(')), limit);
  EXPECT_EQ(parseError(std::string(100000, '-') + "a"), limit);
  std::string sum = "a";
  for (int i = 0; i != 100000; ++i)
    sum += " + a";
  EXPECT_EQ(parseError(sum), limit);
  EXPECT_TRUE(parse(std::string(150, '(') + "a" + std::string(150, ')')));
}

TEST(Expr, RandomRoundTrip) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  for (int i = 0; i != 20000; ++i) {
    const Expr expr = randomExpr(random, 5, {"a", "b", "c"});
    std::string error;
    const Expr again = parseExpr(expr.str(), error);
    ASSERT_TRUE(again) << "seed " << seed << ": " << expr.str() << ": " << error;
    ASSERT_EQ(again.str(), expr.str()) << "seed " << seed;
    ASSERT_EQ(again, expr) << "seed " << seed << ": " << expr.str();
  }
}

/// Folding never changes a value: the same tree evaluated with constants folded in, and with variables.
TEST(Expr, SubstitutionAgreesWithEvaluation) {
  const uint64_t seed = std::random_device()();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  for (int i = 0; i != 20000; ++i) {
    const Expr expr = randomExpr(random, 4, {"a", "b"});
    const int64_t a = int64_t(random() % 41) - 20, b = int64_t(random() % 41) - 20;
    const std::optional<int64_t> value =
        expr.evaluate([&](StringRef name) -> std::optional<int64_t> { return name == "a" ? a : b; });
    if (!value)
      continue;
    const Expr substituted = expr.substitute("a", constant(a)).substitute("b", constant(b));
    const std::optional<int64_t> again = substituted.evaluate([](StringRef) { return std::nullopt; });
    if (again) {
      ASSERT_EQ(*again, *value) << "seed " << seed << ": " << expr.str() << " at " << a << ", " << b;
    }
  }
}

} // namespace
