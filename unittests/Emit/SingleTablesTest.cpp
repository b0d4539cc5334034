// fagen: select and workspaces as text of C.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "single/SingleTables.h"
#include "TestPlan.h"

#include <gtest/gtest.h>

using namespace fagen;
using namespace fagen::test;

namespace {

SelectOp constant(int64_t value) { return {SelectOp::Constant, value}; }
SelectOp variable(SelectVariable of) { return {SelectOp::Variable, int64_t(of)}; }
const SelectOp kRows = variable(SelectVariable::SeqQ), kKeys = variable(SelectVariable::SeqKv);

TEST(SingleTables, ExpressionsHaveTheParenthesesThatTheyNeed) {
  EXPECT_EQ(expressionOf({kRows, constant(32), {SelectOp::Le}}), "p->seq_q <= 32");
  EXPECT_EQ(expressionOf({kRows, kKeys, {SelectOp::Add}, constant(2), {SelectOp::Mul}}), "(p->seq_q + p->seq_kv) * 2");
  EXPECT_EQ(expressionOf({kRows, kKeys, constant(2), {SelectOp::Mul}, {SelectOp::Add}}), "p->seq_q + p->seq_kv * 2");
  EXPECT_EQ(expressionOf({kRows, kKeys, constant(2), {SelectOp::Sub}, {SelectOp::Sub}}), "p->seq_q - (p->seq_kv - 2)");
  EXPECT_EQ(expressionOf({kRows, kKeys, {SelectOp::Sub}, constant(2), {SelectOp::Sub}}), "p->seq_q - p->seq_kv - 2");
  EXPECT_EQ(expressionOf({kRows, {SelectOp::Neg}, {SelectOp::Not}}), "!(-p->seq_q)");
  EXPECT_EQ(expressionOf({kRows, constant(-1), {SelectOp::Sub}}), "p->seq_q - -1");
}

TEST(SingleTables, AndInOrIsInParentheses) {
  const SelectOp a = kRows, b = kKeys, c = variable(SelectVariable::Sms);
  EXPECT_EQ(expressionOf({a, b, {SelectOp::And}, c, {SelectOp::Or}}), "(p->seq_q && p->seq_kv) || sms");
  EXPECT_EQ(expressionOf({a, b, c, {SelectOp::Or}, {SelectOp::And}}), "p->seq_q && (p->seq_kv || sms)");
  EXPECT_EQ(expressionOf({a, b, {SelectOp::Lt}, c, {SelectOp::Eq}}), "(p->seq_q < p->seq_kv) == sms");
}

TEST(SingleTables, QuotientsThatMayBeNoneAreFunctions) {
  EXPECT_EQ(expressionOf({kRows, kKeys, {SelectOp::CeilDiv}, constant(8), {SelectOp::Gt}}),
            "attn_ceil_div(p->seq_q, p->seq_kv, &is_defined) > 8");
  EXPECT_EQ(expressionOf({variable(SelectVariable::Mask), constant(2), {SelectOp::Eq}}), "(p->causal + 1) == 2");
}

TEST(SingleTables, WorkspaceIsWhatMustBeZeroAndTheRest) {
  TestPlan plan;
  plan.plan.variants[0].workspace = {{"counter", {constant(4)}, 4},
                                     {"splits", {kRows, constant(64), {SelectOp::Mul}}, 16, /*isScratch=*/true}};
  EXPECT_EQ(singleWorkspace(plan.plan, {0u, 1u}), R"(  case 0: /* tiny_prefill_f16_d64_none */
    end = (end + 3) / 4 * 4 + 4; /* counter */
    *zero_bytes = end;
    end = (end + 15) / 16 * 16 + p->seq_q * 64; /* splits */
    break;
)");
}

} // namespace
