// fagen: tests of postfix programs: the arithmetic that the runtime's interpreter must agree with.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/Spec/Program.h"

#include "gtest/gtest.h"

#include <limits>

using namespace fagen;

namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Program, Division) {
  EXPECT_EQ(applyBinary(SelectOp::Div, -7, 2), -3); // towards zero
  EXPECT_EQ(applyBinary(SelectOp::Mod, -7, 2), -1);
  EXPECT_EQ(applyBinary(SelectOp::CeilDiv, 7, 2), 4);
  EXPECT_EQ(applyBinary(SelectOp::CeilDiv, -7, 2), -3);
  EXPECT_EQ(applyBinary(SelectOp::CeilDiv, 7, -2), -3);
  EXPECT_EQ(applyBinary(SelectOp::CeilDiv, -7, -2), 4);
  EXPECT_EQ(applyBinary(SelectOp::CeilDiv, 8, 2), 4);
  for (SelectOp::Kind kind : {SelectOp::Div, SelectOp::Mod, SelectOp::CeilDiv})
    EXPECT_EQ(applyBinary(kind, 1, 0), std::nullopt);
}

TEST(Program, Wraps) {
  EXPECT_EQ(applyBinary(SelectOp::Add, kMax, 1), kMin);
  EXPECT_EQ(applyBinary(SelectOp::Sub, kMin, 1), kMax);
  EXPECT_EQ(applyBinary(SelectOp::Mul, kMax, 2), -2);
  EXPECT_EQ(applyBinary(SelectOp::Div, kMin, -1), kMin);
  EXPECT_EQ(applyBinary(SelectOp::Mod, kMin, -1), 0);
  EXPECT_EQ(applyUnary(SelectOp::Neg, kMin), kMin);
}

TEST(Program, EvaluatesWithVariables) {
  // (seq_q + 63) / 64 > sms && !batch, with seq_q = 200, sms = 3, batch = 0
  Program program = {{SelectOp::Variable, 3}, {SelectOp::Constant, 63}, {SelectOp::Add, 0}, {SelectOp::Constant, 64},
                     {SelectOp::Div, 0},      {SelectOp::Variable, 5},  {SelectOp::Gt, 0},  {SelectOp::Variable, 0},
                     {SelectOp::Not, 0},      {SelectOp::And, 0}};
  auto variable = [](int64_t index) -> int64_t { return index == 3 ? 200 : index == 5 ? 3 : 0; };
  EXPECT_EQ(evaluate(program, variable), 1);
  EXPECT_EQ(programDepth(program), 2u);
  Program divides = {{SelectOp::Constant, 1}, {SelectOp::Variable, 0}, {SelectOp::Div, 0}};
  EXPECT_EQ(evaluate(divides, variable), std::nullopt);
}

} // namespace
