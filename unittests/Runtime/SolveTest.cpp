// fagen: which number an extent tells.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "programs/solve.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

using namespace fagen;

namespace {

constexpr fagen_op opOf(uint32_t kind, int64_t value = 0) {
  fagen_op op = {};
  op.kind = kind, op.value = value;
  return op;
}
constexpr fagen_op kA = opOf(FAGEN_OP_VARIABLE, FAGEN_VAR_NUMBER_0),
                   kB = opOf(FAGEN_OP_VARIABLE, FAGEN_VAR_NUMBER_0 + 1);
constexpr fagen_op just(int64_t value) { return opOf(FAGEN_OP_CONSTANT, value); }

/// "a = 3" or "b = 3", where b is 5 unless it is what is asked for; "" where nothing follows.
std::string solved(const std::vector<fagen_op> &ops, int64_t extent, bool knowsA = false, bool knowsB = true) {
  int64_t values[FAGEN_VAR_NUMBER_0 + 2] = {};
  values[FAGEN_VAR_NUMBER_0] = 7, values[FAGEN_VAR_NUMBER_0 + 1] = 5;
  const bool isKnown[] = {knowsA, knowsB};
  fagen_expression expression = {};
  expression.ops = ops.data(), expression.size = uint32_t(ops.size());
  const auto told = solveExtent(expression, extent, values, isKnown);
  return told ? std::string(told->number == 0 ? "a = " : "b = ") + std::to_string(told->value) : "";
}

TEST(Solve, SumsDifferencesAndProductsAreTakenBack) {
  EXPECT_EQ(solved({kA}, 3), "a = 3");
  EXPECT_EQ(solved({kA, just(1), opOf(FAGEN_OP_ADD)}, 4), "a = 3");
  EXPECT_EQ(solved({just(1), kA, opOf(FAGEN_OP_ADD)}, 4), "a = 3");
  EXPECT_EQ(solved({kA, just(2), opOf(FAGEN_OP_SUB)}, 4), "a = 6");
  EXPECT_EQ(solved({just(9), kA, opOf(FAGEN_OP_SUB)}, 4), "a = 5");
  EXPECT_EQ(solved({kA, kB, opOf(FAGEN_OP_MUL)}, 40), "a = 8");
  EXPECT_EQ(solved({kA, kB, opOf(FAGEN_OP_MUL)}, 28, true, false), "b = 4");
  EXPECT_EQ(solved({kB, kA, just(3), opOf(FAGEN_OP_MUL), just(1), opOf(FAGEN_OP_ADD), opOf(FAGEN_OP_MUL)}, 35),
            "a = 2");
}

TEST(Solve, NothingFollows) {
  EXPECT_EQ(solved({just(3)}, 3), "");
  EXPECT_EQ(solved({kA}, 3, true), "") << "it is known";
  EXPECT_EQ(solved({kA, kB, opOf(FAGEN_OP_ADD)}, 3, false, false), "") << "two are not";
  EXPECT_EQ(solved({kA, kA, opOf(FAGEN_OP_ADD)}, 4), "") << "it stands there twice";
  EXPECT_EQ(solved({kA, kB, opOf(FAGEN_OP_MUL)}, 41), "") << "no whole number";
  EXPECT_EQ(solved({kA, just(0), opOf(FAGEN_OP_MUL)}, 0), "") << "any number";
  EXPECT_EQ(solved({kA, just(2), opOf(FAGEN_OP_FLOOR_DIV)}, 4), "") << "several numbers";
  EXPECT_EQ(solved({kA, just(0), opOf(FAGEN_OP_FLOOR_DIV), just(1), opOf(FAGEN_OP_ADD)}, 4), "");
}

} // namespace
