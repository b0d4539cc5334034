// fagen: the interpreter of select conditions and workspace sizes.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program.h"

#include <gtest/gtest.h>
#include <limits>
#include <vector>

using namespace fagen;

namespace {

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::optional<int64_t> binary(uint32_t kind, int64_t a, int64_t b) {
  const fagen_op program[] = {{FAGEN_OP_CONSTANT, 0, a}, {FAGEN_OP_CONSTANT, 0, b}, {kind, 0, 0}};
  EXPECT_EQ(checkProgram(program, 3), nullptr);
  return evaluate(program, 3, {});
}

TEST(Program, Arithmetic) {
  EXPECT_EQ(binary(FAGEN_OP_ADD, 2, 3), 5);
  EXPECT_EQ(binary(FAGEN_OP_SUB, 2, 3), -1);
  EXPECT_EQ(binary(FAGEN_OP_MUL, -4, 3), -12);
  EXPECT_EQ(binary(FAGEN_OP_DIV, -7, 2), -3);
  EXPECT_EQ(binary(FAGEN_OP_MOD, -7, 2), -1);
  EXPECT_EQ(binary(FAGEN_OP_CEIL_DIV, 7, 2), 4);
  EXPECT_EQ(binary(FAGEN_OP_CEIL_DIV, 8, 2), 4);
  EXPECT_EQ(binary(FAGEN_OP_CEIL_DIV, -7, 2), -3);
  EXPECT_EQ(binary(FAGEN_OP_CEIL_DIV, -7, -2), 4);
}

TEST(Program, LeastLargestAndQuotientsRoundedDown) {
  EXPECT_EQ(binary(FAGEN_OP_MIN, 2, -3), -3);
  EXPECT_EQ(binary(FAGEN_OP_MAX, 2, -3), 2);
  EXPECT_EQ(binary(FAGEN_OP_FLOOR_DIV, 7, 2), 3);
  EXPECT_EQ(binary(FAGEN_OP_FLOOR_DIV, -7, 2), -4);
  EXPECT_EQ(binary(FAGEN_OP_FLOOR_DIV, 7, -2), -4);
  EXPECT_EQ(binary(FAGEN_OP_FLOOR_DIV, -8, 2), -4);
  EXPECT_EQ(binary(FAGEN_OP_FLOOR_DIV, kMin, -1), kMin);
  EXPECT_EQ(binary(FAGEN_OP_FLOOR_DIV, 1, 0), std::nullopt);
}

TEST(Program, OverflowWraps) {
  EXPECT_EQ(binary(FAGEN_OP_ADD, kMax, 1), kMin);
  EXPECT_EQ(binary(FAGEN_OP_SUB, kMin, 1), kMax);
  EXPECT_EQ(binary(FAGEN_OP_MUL, kMax, 2), -2);
  EXPECT_EQ(binary(FAGEN_OP_DIV, kMin, -1), kMin);
  EXPECT_EQ(binary(FAGEN_OP_MOD, kMin, -1), 0);
  EXPECT_EQ(binary(FAGEN_OP_CEIL_DIV, kMin, -1), kMin);
  const fagen_op negate[] = {{FAGEN_OP_CONSTANT, 0, kMin}, {FAGEN_OP_NEG, 0, 0}};
  EXPECT_EQ(evaluate(negate, 2, {}), kMin);
}

TEST(Program, ZeroDivisorHasNoValue) {
  EXPECT_EQ(binary(FAGEN_OP_DIV, 1, 0), std::nullopt);
  EXPECT_EQ(binary(FAGEN_OP_MOD, 1, 0), std::nullopt);
  EXPECT_EQ(binary(FAGEN_OP_CEIL_DIV, 1, 0), std::nullopt);
}

TEST(Program, ComparisonsAndLogic) {
  EXPECT_EQ(binary(FAGEN_OP_LT, 1, 2), 1);
  EXPECT_EQ(binary(FAGEN_OP_LE, 2, 2), 1);
  EXPECT_EQ(binary(FAGEN_OP_GT, 1, 2), 0);
  EXPECT_EQ(binary(FAGEN_OP_GE, 1, 2), 0);
  EXPECT_EQ(binary(FAGEN_OP_EQ, 2, 2), 1);
  EXPECT_EQ(binary(FAGEN_OP_NE, 2, 2), 0);
  EXPECT_EQ(binary(FAGEN_OP_AND, 2, 4), 1);
  EXPECT_EQ(binary(FAGEN_OP_OR, 0, 0), 0);
  const fagen_op negated[] = {{FAGEN_OP_CONSTANT, 0, 7}, {FAGEN_OP_NOT, 0, 0}};
  EXPECT_EQ(evaluate(negated, 2, {}), 0);
}

TEST(Program, Variables) {
  Variables variables;
  variables.values[FAGEN_VAR_SEQ_KV] = 4096;
  variables.values[FAGEN_VAR_HEADS] = 8;
  const fagen_op program[] = {
      {FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SEQ_KV}, {FAGEN_OP_VARIABLE, 0, FAGEN_VAR_HEADS}, {FAGEN_OP_DIV, 0, 0}};
  EXPECT_EQ(evaluate(program, 3, variables), 512);
}

TEST(Program, MalformedProgramsHaveNoValueAndAReason) {
  const fagen_op lacking[] = {{FAGEN_OP_CONSTANT, 0, 1}, {FAGEN_OP_ADD, 0, 0}};
  const fagen_op two[] = {{FAGEN_OP_CONSTANT, 0, 1}, {FAGEN_OP_CONSTANT, 0, 1}};
  const fagen_op variable[] = {{FAGEN_OP_VARIABLE, 0, Variables::kCount}};
  const fagen_op unknown[] = {{FAGEN_OP_CONSTANT, 0, 1}, {FAGEN_OP_CONSTANT, 0, 1}, {99, 0, 0}};
  const std::vector<fagen_op> deep(FAGEN_PROGRAM_DEPTH + 1, {FAGEN_OP_CONSTANT, 0, 1});
  EXPECT_STREQ(checkProgram(lacking, 2), "lacks an operand");
  EXPECT_STREQ(checkProgram(two, 2), "does not end with one value");
  EXPECT_STREQ(checkProgram(two, 0), "does not end with one value");
  EXPECT_STREQ(checkProgram(variable, 1), "has an unknown variable");
  EXPECT_STREQ(checkProgram(unknown, 3), "has an unknown operation");
  EXPECT_STREQ(checkProgram(deep.data(), uint32_t(deep.size())), "holds too many values at once");
  EXPECT_EQ(evaluate(lacking, 2, {}), std::nullopt);
  EXPECT_EQ(evaluate(two, 2, {}), std::nullopt);
  EXPECT_EQ(evaluate(variable, 1, {}), std::nullopt);
  EXPECT_EQ(evaluate(unknown, 3, {}), std::nullopt);
  EXPECT_EQ(evaluate(deep.data(), uint32_t(deep.size()), {}), std::nullopt);
}

} // namespace
