// fagen: tests of real expressions: their text, their types, what is made of them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/ExprTypes.h"

#include "ParsedExpr.h"
#include "RandomExpr.h"

#include "fagen/IR/Patterns.h"

#include "gtest/gtest.h"

using namespace fagen::ir;
using llvm::StringRef;

namespace {

ExprType typeOfName(StringRef name) { return name.starts_with("%") ? ExprType::Real : ExprType::Integer; }

std::string typeError(StringRef text) {
  std::string error;
  EXPECT_FALSE(typeOf(parse(text), typeOfName, error)) << text.str();
  return error;
}

TEST(RealExpr, PrintsWhatItReads) {
  for (StringRef text :
       {"%s * 0.5", "-inf", "inf - %s", "1e-30 + %s", "%s / %m / 2.0", "%s / (%m / 2.0)", "%s % k", "exp2(%s - %m)",
        "q < k ? %s : -inf", "(q < k ? %s : %m) * 2.0", "q < k ? %s : q == k ? %m : 0.0",
        "(q < k ? q : k) < 2 ? %s : %m", "!(%s <= 16384.0) ? 1.0 : 0.0", "!q ? tanh(%s) : log2(%m)",
        "abs(f32(q - k)) * %s", "max(%s, 0.0)", "sqrt(%s) + f32(i32(%m))", "%t[q, k] * %s"})
    EXPECT_EQ(parse(text).str(), text.str());
}

TEST(RealExpr, RandomOnesPrintWhatTheyReadAndAreReal) {
  std::mt19937_64 random(7);
  for (unsigned i = 0; i != 20000; ++i) {
    const Expr expr = randomReal(random, random() % 6);
    EXPECT_EQ(parse(expr.str()), expr) << expr.str();
    std::string error;
    EXPECT_EQ(typeOf(expr, typeOfName, error), ExprType::Real) << expr.str() << ": " << error;
    EXPECT_FALSE(isOfIntegers(expr)) << expr.str();
  }
}

TEST(RealExpr, RefusesTextWithItsReason) {
  EXPECT_EQ(parseError("1.5x"), "malformed number '1.5x'");
  EXPECT_EQ(parseError("1.2.3"), "malformed number '1.2.3'");
  EXPECT_EQ(parseError("1e99"), "number '1e99' does not fit in f32");
  EXPECT_EQ(parseError("q < k ? %s"), "expected ':'");
  EXPECT_EQ(parseError("% s"), "expected an expression");
  EXPECT_EQ(parseError("exp2(%s, %m)"), "expected ')'");
}

TEST(RealExpr, MixesNothing) {
  EXPECT_EQ(typeError("%s + 1"),
            "'%s + 1' mixes '%s', a real number, with '1', an integer; f32() makes a real number of "
            "an integer");
  EXPECT_EQ(typeError("exp2(q)"), "'q' in 'exp2(q)' is an integer, where a real number is wanted");
  EXPECT_EQ(typeError("f32(%s)"), "'%s' in 'f32(%s)' is a real number, where an integer is wanted");
  EXPECT_EQ(typeError("%s ? %s : 1.0"), "'%s' in '%s ? %s : 1.0' is a real number, where an integer is wanted");
  EXPECT_EQ(typeError("q < k ? %s : 0"),
            "'q < k ? %s : 0' mixes '%s', a real number, with '0', an integer; f32() makes a "
            "real number of an integer");
  EXPECT_EQ(typeError("q / k"), "'q' in 'q / k' is an integer, where a real number is wanted");
  EXPECT_EQ(typeError("floor_div(%s, %s)"), "'%s' in 'floor_div(%s, %s)' is a real number, where an integer is wanted");
}

TEST(RealExpr, ReadsAreWhatTheirBufferHolds) {
  std::string error;
  const auto ofTables = [](StringRef name) { return name == "%table" ? ExprType::Real : ExprType::Integer; };
  EXPECT_EQ(typeOf(parse("%table[q, k + 1] * 2.0"), ofTables, error), ExprType::Real);
  EXPECT_EQ(typeOf(parse("%words[q] & (1 << k)"), ofTables, error), ExprType::Integer);
  EXPECT_EQ(typeOf(parse("i32(%table[%words[q]])"), ofTables, error), ExprType::Integer);
  EXPECT_EQ(typeOf(parse("ascending(%words[q]) == k"), ofTables, error), ExprType::Integer);
  EXPECT_EQ(typeError("%words[%s]"), "'%s' in '%words[%s]' is a real number, where an integer is wanted");
}

TEST(RealExpr, BitsAreOfIntegers) {
  for (StringRef text : {"%s & %s", "%s | %s", "%s ^ %s", "%s << %s", "%s >> %s", "floor_mod(%s, %s)"})
    EXPECT_EQ(typeError(text), "'%s' in '" + text.str() + "' is a real number, where an integer is wanted");
  EXPECT_EQ(typeError("i32(q)"), "'q' in 'i32(q)' is an integer, where a real number is wanted");
  EXPECT_EQ(typeError("sqrt(q)"), "'q' in 'sqrt(q)' is an integer, where a real number is wanted");
}

TEST(RealExpr, ASelectOfIntegersHasItsValue) {
  const Expr expr = parse("q < 3 ? q + 1 : !k");
  auto value = [&](int64_t q, int64_t k) {
    return expr.evaluate([&](StringRef name) { return std::optional(name == "q" ? q : k); });
  };
  EXPECT_EQ(value(2, 5), 3);
  EXPECT_EQ(value(3, 5), 0);
  EXPECT_EQ(value(3, 0), 1);
  EXPECT_FALSE(isOfIntegers(expr)) << "no loop may be bounded by it";
}

TEST(RealExpr, AssumeFiniteTakesGuardsOutAndNothingElse) {
  const Expr m = variable("%m");
  EXPECT_EQ(finiteOf(m).str(), "%m == -inf ? 0.0 : %m");
  EXPECT_EQ(assumeFinite(exp2(variable("%s") - finiteOf(m))).str(), "exp2(%s - %m)");
  for (StringRef text : {"%m == -inf ? 1.0 : %m", "%s == -inf ? 0.0 : %m", "%m == inf ? 0.0 : %m"})
    EXPECT_EQ(assumeFinite(parse(text)).str(), text.str());
}

} // namespace
