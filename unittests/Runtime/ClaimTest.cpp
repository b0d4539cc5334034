// fagen: of several tables one that claims the problem comes before those whose target is nearer.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "FakeManifest.h"
#include "TestTable.h"

#include <gtest/gtest.h>

using namespace fagen::test;

namespace {

/// Rows for a device of sm_90 itself, and rows of sm_89 text that claim problems of at most 16 query rows.
struct ClaimTest : testing::Test {
  TestTable prefill{"prefill"}, decode{"decode"};
  TestDevice device{90};
  fagen_problem step = makeProblem();

  ClaimTest() {
    fagen_row near = makeRow("near");
    near.sm = near.first_sm = 90;
    near.target = "sm_90";
    prefill.add(near);
    decode.add(makeRow("step")).claim("seq_q <= 16", seqQAtMost(16));
    step.seq_q = 1;
  }
  std::string pickBoth(const fagen_problem &problem) { return pick({prefill.get(), decode.get()}, problem, device); }
  std::string explain() {
    const fagen_table *tables[] = {prefill.get(), decode.get()};
    std::string text(fagen_explain(tables, 2, &step, device, nullptr, 0) + 1, '\0');
    fagen_explain(tables, 2, &step, device, text.data(), text.size());
    return text;
  }
};

TEST_F(ClaimTest, AClaimThatHoldsComesBeforeANearerTarget) {
  EXPECT_EQ(pickBoth(step), "step");
  EXPECT_EQ(pick({decode.get(), prefill.get()}, step, device), "step"); // in whatever order
  EXPECT_EQ(pickBoth(makeProblem()), "near");
}

TEST_F(ClaimTest, OfTwoClaimsTheNearerTargetThenTheFirstTable) {
  prefill.claim("seq_q <= 16", seqQAtMost(16));
  EXPECT_EQ(pickBoth(step), "near");
  TestTable second("second");
  second.add(makeRow("second")).claim("seq_q <= 16", seqQAtMost(16));
  EXPECT_EQ(pick({decode.get(), second.get()}, step, device), "step");
}

TEST_F(ClaimTest, RowsThatDoNotFitClaimNothing) {
  step.alignment = 2; // rows want 16
  fagen_row any = makeRow("any");
  any.alignment = 2;
  any.dispatch = FAGEN_ROW_FALLBACK;
  decode.add(any);
  EXPECT_EQ(pickBoth(step), "any"); // both tables' fallbacks are asked as without claims
  step.alignment = 16;
  step.dtype = FAGEN_DTYPE_BF16;
  EXPECT_EQ(pickBoth(step), "UNSUPPORTED");
}

TEST_F(ClaimTest, ConditionsWithoutAValueDoNotHold) {
  decode.claim("1 / 0", {{FAGEN_OP_CONSTANT, 0, 1}, {FAGEN_OP_CONSTANT, 0, 0}, {FAGEN_OP_DIV, 0, 0}});
  EXPECT_EQ(pickBoth(step), "near");
}

TEST_F(ClaimTest, TablesOfBeforeThereWereClaims) {
  decode.withoutClaims();
  EXPECT_EQ(fagen_table_check(decode.get()), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(pickBoth(step), "near");
}

TEST_F(ClaimTest, ExplainSaysWhoClaims) {
  const std::string text = explain();
  EXPECT_NE(text.find("decode claims 'seq_q <= 16'; select line 'otherwise' of decode"), std::string::npos) << text;
  EXPECT_NE(text.find("claim    decode: seq_q <= 16: true\n"), std::string::npos) << text;
  EXPECT_NE(text.find("near (sm_90): fits, but decode claims the problem\n"), std::string::npos) << text;
}

TEST_F(ClaimTest, ChecksLookAtThem) {
  decode.claim("?", {{FAGEN_OP_LE, 0, 0}});
  EXPECT_EQ(fagen_table_check(decode.get()), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "table decode, claim: lacks an operand");
}

TEST(Claim, StandsInTheManifest) {
  FakeManifest set;
  ASSERT_EQ(set.error(), "");
  EXPECT_EQ(set.table->claim_size, 0u);
  set.change("\"kernel\"",
             "\"claim\": {\"condition\": [\"seq_q\", 16, \"le\"], \"text\": \"seq_q <= 16\"},\n\"kernel\"");
  ASSERT_EQ(set.error(), "");
  EXPECT_EQ(set.table->claim_size, 3u);
  EXPECT_STREQ(set.table->claim_text, "seq_q <= 16");
  set.change("16, \"le\"], \"text\": \"seq_q <= 16\"", "16], \"text\": \"\"");
  EXPECT_NE(set.error().find("claim: does not end with one value"), std::string::npos) << set.error();
}

} // namespace
