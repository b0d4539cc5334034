// fagen: what is proved of expressions holds for all that their names may be.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Analysis/Inequalities.h"

#include <gtest/gtest.h>

#include <random>

using namespace fagen;
using namespace fagen::ir;

namespace {

/// size A in [0, 4], B in [1, 3]; grid (i in A, j in ceil_div(A, B)); %t : i32[B] in [-2, 2]; let x = %t[0]
Kernel smallKernel() {
  Kernel kernel;
  kernel.sizes = {"A", "B"};
  kernel.sizeRanges = {{"A", {0, 4}}, {"B", {1, 3}}};
  kernel.grid.indices = {{"i", variable("A")}, {"j", ceilDiv(variable("A"), variable("B"))}};
  Buffer tensor;
  tensor.name = tensor.param = "t";
  tensor.space = Space::Global;
  tensor.type = ElementType::I32;
  tensor.shape = {variable("B")};
  tensor.values = Interval{-2, 2};
  Buffer &added = kernel.addBuffer(std::move(tensor));
  Let let;
  let.name = "x";
  let.value = variable("x");
  let.source = GlobalElement{&added, {constant(0)}, -2, 2};
  kernel.lets.push_back(std::move(let));
  return kernel;
}

class RandomExprs {
public:
  explicit RandomExprs(unsigned seed) : random(seed) {}

  Expr next(unsigned depth) {
    const unsigned kind = depth == 0 ? pick(2) : pick(9);
    if (kind == 0)
      return constant(int64_t(pick(5)) - 1);
    if (kind == 1)
      return variable(kNames[pick(kNames.size())]);
    const Expr a = next(depth - 1), b = next(depth - 1);
    switch (kind) {
    case 2:
      return a + b;
    case 3:
      return a - b;
    case 4:
      return a * b;
    case 5:
      return min(a, b);
    case 6:
      return max(a, b);
    case 7:
      return floorDiv(a, max(b, constant(1)));
    default:
      return select(lessThan(a, b), next(depth - 1), a);
    }
  }

  static constexpr std::array<const char *, 5> kNames = {"A", "B", "i", "j", "x"};

private:
  unsigned pick(size_t count) { return random() % count; }
  std::mt19937 random;
};

/// Calls `visit` with all that the names may be.
void forEachState(llvm::function_ref<void(llvm::function_ref<std::optional<int64_t>(llvm::StringRef)>)> visit) {
  for (int64_t a = 0; a <= 4; ++a)
    for (int64_t b = 1; b <= 3; ++b)
      for (int64_t i = 0; i < a; ++i)
        for (int64_t j = 0; j < (a + b - 1) / b; ++j)
          for (int64_t x = -2; x <= 2; ++x)
            visit([=](llvm::StringRef name) -> std::optional<int64_t> {
              return name == "A" ? a : name == "B" ? b : name == "i" ? i : name == "j" ? j : x;
            });
}

bool isAlwaysAtMost(const Expr &a, const Expr &b) {
  bool holds = true;
  forEachState([&](auto lookup) { holds &= *a.evaluate(lookup) <= *b.evaluate(lookup); });
  return holds;
}

} // namespace

TEST(Inequalities, WhatIsProvedHolds) {
  const Kernel kernel = smallKernel();
  RandomExprs exprs(42);
  unsigned proved = 0, held = 0;
  for (unsigned count = 0; count < 400; ++count) {
    const Expr a = exprs.next(2), b = exprs.next(2);
    const bool isProved = Inequalities(kernel).isAtMost(a, b), holds = isAlwaysAtMost(a, b);
    EXPECT_TRUE(holds || !isProved) << a.str() << " <= " << b.str();
    proved += isProved;
    held += holds;
  }
  EXPECT_GT(proved, held / 2) << "of " << held << " that hold";
}

TEST(Inequalities, AssumptionsEndWithTheirScope) {
  const Kernel kernel = smallKernel();
  Inequalities known(kernel);
  const Expr x = variable("x"), i = variable("i");
  {
    const Inequalities::Scope scope(known);
    known.assume(logicalAnd(lessThan(x, i), lessEqual(constant(0), x)));
    EXPECT_TRUE(known.isAtMost(x, variable("A") - constant(2)));
    EXPECT_TRUE(known.isNotNegative(x));
    known.assume(lessThan(x, constant(0))); // which nobody reaches
    EXPECT_TRUE(known.isAtMost(constant(1), constant(0)));
  }
  EXPECT_FALSE(known.isAtMost(x, i));
  EXPECT_FALSE(known.isNotNegative(x));
  EXPECT_FALSE(known.isAtMost(constant(1), constant(0)));
}
