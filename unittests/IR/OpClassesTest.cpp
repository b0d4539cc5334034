// fagen: tests of the generated classes of ops, and of what copies and rewrites ops.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fagen/IR/OpClasses.h"

#include "gtest/gtest.h"

using namespace fagen;
using namespace fagen::ir;

namespace {

std::string printed(const Op &op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(op, os);
  return text;
}

struct OpClassesTest : testing::Test {
  OpClassesTest() {
    k.name = "k";
    k.isRing = true;
    g.name = "g";
    g.space = Space::Global;
  }
  std::unique_ptr<Op> makeCopy() {
    return makeCopyIssue({.dst = {&k, variable("j")},
                          .src = {&g, {}},
                          .kind = CopyKind::CpAsync,
                          .row = variable("j") * constant(64),
                          .limit = variable("seq_kv"),
                          .running = true,
                          .note = "why"});
  }
  Buffer k, g;
};

TEST_F(OpClassesTest, MakersAndAccessorsAgree) {
  const std::unique_ptr<Op> op = makeCopy();
  const CopyIssueOp copy(std::as_const(*op));
  EXPECT_EQ(copy.dst().buffer, &k);
  EXPECT_EQ(copy.src().buffer, &g);
  EXPECT_EQ(copy.full().buffer, nullptr);
  EXPECT_EQ(copy.kind(), CopyKind::CpAsync);
  EXPECT_EQ(copy.limit(), variable("seq_kv"));
  EXPECT_FALSE(copy.when());
  EXPECT_TRUE(copy.running());
  EXPECT_FALSE(copy.cluster());
  EXPECT_EQ(copy->note, "why");
  EXPECT_EQ(printed(*op), "copy_issue %k[j], %g {kind = \"cp_async\", row = j * 64, limit = seq_kv, running = 1} "
                          "note(\"why\")\n");
}

TEST_F(OpClassesTest, SettersChangeWhatIsPrinted) {
  const std::unique_ptr<Op> op = makeCopy();
  const CopyIssueOp copy(*op);
  copy.setKind(CopyKind::LdSt);
  copy.setRow(constant(0));
  copy.setRunning(false);
  copy.dst().position = constant(1);
  EXPECT_EQ(printed(*op), "copy_issue %k[1], %g {kind = \"ld_st\", row = 0, limit = seq_kv, running = 0} "
                          "note(\"why\")\n");
}

TEST_F(OpClassesTest, DynCastTellsKindsApart) {
  const std::unique_ptr<Op> op = makeCopy();
  EXPECT_TRUE(dynCast<CopyIssueOp>(*op));
  EXPECT_FALSE(dynCast<BarrierOp>(*op));
}

TEST_F(OpClassesTest, AbsentAttributesHaveTheirDefaults) {
  const std::unique_ptr<Op> barrier = makeBarrier({.scope = BarrierScope::Cta});
  EXPECT_EQ(BarrierOp(*barrier).groups(), 1);
  EXPECT_EQ(BarrierOp(*barrier).id(), std::nullopt);
  EXPECT_EQ(BarrierOp(*barrier).place(), std::nullopt);
  EXPECT_EQ(printed(*barrier), "barrier {scope = \"cta\"}\n");
  const std::unique_ptr<Op> fill = makeMap({.dst = {&k, {}}, .value = real(1)});
  EXPECT_EQ(MapOp(*fill).when(), Expr());
  EXPECT_EQ(printed(*fill), "map %k {value = 1.0}\n");
}

TEST_F(OpClassesTest, ForEachVisitsBodiesToo) {
  Block block;
  block.ops.push_back(makeLoop({.variable = "j", .begin = constant(0), .end = variable("n")}));
  block.ops.front()->body.ops.push_back(makeCopy());
  block.ops.push_back(makeCopy());
  unsigned copies = 0;
  forEach<CopyIssueOp>(block, [&](CopyIssueOp<> copy) { copies += copy.running(); });
  EXPECT_EQ(copies, 2u);
}

TEST_F(OpClassesTest, CloneAndSubstituteReachBodies) {
  const std::unique_ptr<Op> loop = makeLoop({.variable = "i", .begin = constant(0), .end = variable("n")});
  loop->body.ops.push_back(makeCopy());
  loop->body.ops.front()->site = 3;
  const std::unique_ptr<Op> copy = clone(*loop);
  EXPECT_EQ(copy->body.ops.front()->site, 0u);
  substitute(*copy, "j", constant(2));
  EXPECT_EQ(printed(*copy->body.ops.front()), "copy_issue %k[2], %g {kind = \"cp_async\", row = 128, limit = seq_kv, "
                                              "running = 1} note(\"why\")\n");
  EXPECT_NE(printed(*loop), printed(*copy));
}

TEST_F(OpClassesTest, RewriteDropsKeepsAndAdds) {
  Block block;
  block.ops.push_back(makeLoop({.variable = "j", .begin = constant(0), .end = variable("n")}));
  block.ops.front()->body.ops.push_back(makeCopyCommit({}));
  block.ops.push_back(makeCopyCommit({}));
  rewrite(block, [](std::unique_ptr<Op> op, Ops &ops) {
    if (op->kind == OpKind::CopyCommit)
      ops.push_back(makeCopyWait({.pending = 0}));
    ops.push_back(std::move(op));
  });
  std::vector<OpKind> kinds;
  walk(block, [&](const Op &op) { kinds.push_back(op.kind); });
  EXPECT_EQ(kinds, (std::vector<OpKind>{OpKind::Loop, OpKind::CopyWait, OpKind::CopyCommit, OpKind::CopyWait,
                                        OpKind::CopyCommit}));
}

} // namespace
