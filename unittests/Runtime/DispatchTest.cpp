// fagen: which row fagen_query picks.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestTable.h"
#include "problem.h"

#include <gtest/gtest.h>

using namespace fagen::test;

namespace {

fagen_row makeRowOf(const char *variant, uint32_t schedule, uint32_t sm = 89) {
  fagen_row row = fagen::test::makeRow(variant);
  row.schedule = schedule;
  row.sm = sm;
  row.target = sm == 80 ? "sm_80" : sm == 86 ? "sm_86" : sm == 90 ? "sm_90" : "sm_89";
  row.first_sm = sm == 90 ? 90 : 80;
  return row;
}

fagen_row fallbackRow(const char *variant, uint32_t schedule) {
  fagen_row row = makeRowOf(variant, schedule);
  row.dispatch = FAGEN_ROW_FALLBACK;
  row.alignment = 2;
  return row;
}

/// prefill and short, chosen by seq_q <= 32, and a fallback.
TestTable twoSchedules() {
  TestTable table("k", {"prefill", "short", "unaligned"});
  table.add(makeRowOf("prefill", 0)).add(makeRowOf("short", 1)).add(fallbackRow("unaligned", 2));
  table.select("seq_q <= 32", 1, seqQAtMost(32)).select("otherwise", 0);
  return table;
}

TEST(Dispatch, SelectDecidesAmongSchedules) {
  TestTable table = twoSchedules();
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  EXPECT_EQ(fagen_table_check(table.get()), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(pick({table.get()}, problem, device), "prefill");
  problem.seq_q = 32;
  EXPECT_EQ(pick({table.get()}, problem, device), "short");
}

TEST(Dispatch, SelectFallsThroughToTheNextTrueLine) {
  TestTable table("k", {"wide", "middle", "narrow"});
  fagen_row large = makeRowOf("wide", 0);
  large.launches[0].shared_bytes = 200 * 1024; // more than sm_89 has
  table.add(large).add(makeRowOf("middle", 1)).add(makeRowOf("narrow", 2));
  table.select("seq_q <= 1024", 0, seqQAtMost(1024)).select("seq_q <= 600", 1, seqQAtMost(600)).select("otherwise", 2);
  TestDevice l4(89), h200(90);
  EXPECT_EQ(pick({table.get()}, makeProblem(), l4), "middle");
  EXPECT_EQ(pick({table.get()}, makeProblem(), h200), "wide");
  fagen_problem longer = makeProblem();
  longer.seq_q = 700;
  EXPECT_EQ(pick({table.get()}, longer, l4), "narrow");
}

TEST(Dispatch, SelectSeesTheNumberOfSMs) {
  TestTable table("k", {"few", "many"});
  table.add(makeRowOf("few", 0)).add(makeRowOf("many", 1));
  table.select("sms > 100", 1,
               {{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SMS}, {FAGEN_OP_CONSTANT, 0, 100}, {FAGEN_OP_GT, 0, 0}});
  table.select("otherwise", 0);
  TestDevice small(89, 58), large(89, 132);
  EXPECT_EQ(pick({table.get()}, makeProblem(), small), "few");
  EXPECT_EQ(pick({table.get()}, makeProblem(), large), "many");
}

TEST(Dispatch, FallbackOnlyWhenAlignmentExcludesAllOthers) {
  TestTable table = twoSchedules();
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  problem.alignment = 8;
  EXPECT_EQ(pick({table.get()}, problem, device), "unaligned");
  problem.alignment = 0; // absent: 16
  EXPECT_EQ(pick({table.get()}, problem, device), "prefill");
  problem.q_stride[0] = 0;
  problem.q_stride[1] = 512 * 68;
  problem.q_stride[2] = 68; // 136 B
  EXPECT_EQ(pick({table.get()}, problem, device), "unaligned");
}

TEST(Dispatch, RowThatSelectDoesNotNameComesBeforeTheFallback) {
  TestTable table("k", {"vec16", "vec4", "unaligned"});
  fagen_row vec4 = makeRowOf("vec4", 1);
  vec4.alignment = 4;
  table.add(makeRowOf("vec16", 0)).add(vec4).add(fallbackRow("unaligned", 2));
  table.select("seq_q <= 1", 1, seqQAtMost(1)).select("otherwise", 0);
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  problem.alignment = 4;
  EXPECT_EQ(pick({table.get()}, problem, device), "vec4");
  problem.alignment = 2;
  EXPECT_EQ(pick({table.get()}, problem, device), "unaligned");
}

TEST(Dispatch, MisalignedWithoutAFallback) {
  TestTable table("k");
  table.add(makeRowOf("only", 0));
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  problem.alignment = 2;
  EXPECT_EQ(pick({table.get()}, problem, device), "MISALIGNED");
  EXPECT_STREQ(fagen_last_error(), "no row for forward f16 head_dim 64, mask none fits: only needs 16-byte alignment; "
                                   "base pointers and strides share 2");
}

TEST(Dispatch, StridesOfOneElementDimensionsDoNotCount) {
  TestTable table("k");
  table.add(makeRowOf("only", 0));
  TestDevice device(89);
  fagen_problem problem = makeProblem(); // batch is 1
  for (auto stride : {problem.q_stride, problem.k_stride, problem.v_stride, problem.o_stride}) {
    stride[0] = -7;
    stride[1] = 512 * 64;
    stride[2] = 64;
  }
  problem.lse_stride[0] = -1;
  problem.lse_stride[1] = 512;
  EXPECT_EQ(pick({table.get()}, problem, device), "only") << fagen_last_error();
  problem.batch = 2;
  EXPECT_EQ(pick({table.get()}, problem, device), "INVALID");
}

TEST(Dispatch, ExactTargetThenNearestLowerThenHigherText) {
  TestTable table("k");
  table.add(makeRowOf("on80", 0, 80)).add(makeRowOf("on86", 0, 86)).add(makeRowOf("on90", 0, 90));
  TestDevice sm80(80), sm86(86), sm87(87), sm89(89), sm90(90), sm120(120), sm75(75);
  EXPECT_EQ(pick({table.get()}, makeProblem(), sm80), "on80");
  EXPECT_EQ(pick({table.get()}, makeProblem(), sm86), "on86");
  EXPECT_EQ(pick({table.get()}, makeProblem(), sm87), "on86");
  EXPECT_EQ(pick({table.get()}, makeProblem(), sm89), "on86");
  EXPECT_EQ(pick({table.get()}, makeProblem(), sm90), "on90");
  EXPECT_EQ(pick({table.get()}, makeProblem(), sm120), "on90");
  EXPECT_EQ(pick({table.get()}, makeProblem(), sm75), "UNSUPPORTED");

  TestTable higher("k");
  higher.add(makeRowOf("on89", 0, 89)).add(makeRowOf("on86", 0, 86));
  EXPECT_EQ(pick({higher.get()}, makeProblem(), sm80), "on86"); // text for sm_86 uses only what sm_80 has
  higher.add(makeRowOf("on80", 0, 80));
  EXPECT_EQ(pick({higher.get()}, makeProblem(), sm87), "on86"); // lower targets before higher ones, however near
  TestTable both("k");
  both.add(makeRowOf("on80", 0, 80)).add(makeRowOf("on89", 0, 89));
  EXPECT_EQ(pick({both.get()}, makeProblem(), sm87), "on80");
}

TEST(Dispatch, ArchitectureSpecificRowsWantTheirCapability) {
  TestTable table("k");
  fagen_row hopper = makeRowOf("hopper", 0, 90);
  hopper.target = "sm_90a";
  hopper.exact = 1;
  hopper.last_sm = 90;
  table.add(hopper).add(makeRowOf("generic", 0, 80));
  TestDevice sm90(90), sm100(100), sm89(89);
  EXPECT_EQ(pick({table.get()}, makeProblem(), sm90), "hopper");
  EXPECT_EQ(pick({table.get()}, makeProblem(), sm100), "generic");
  EXPECT_EQ(pick({table.get()}, makeProblem(), sm89), "generic");
}

TEST(Dispatch, BetweenTablesTargetThenOrder) {
  TestTable a("a"), b("b"), c("c");
  a.add(makeRowOf("a80", 0, 80));
  b.add(makeRowOf("b89", 0, 89));
  c.add(makeRowOf("c89", 0, 89));
  TestDevice device(89);
  EXPECT_EQ(pick({a.get(), b.get(), c.get()}, makeProblem(), device), "b89");
  EXPECT_EQ(pick({a.get(), c.get(), b.get()}, makeProblem(), device), "c89");
}

TEST(Dispatch, FallbackOfOneTableComesAfterRowsOfOthers) {
  TestTable a("a"), b("b");
  fagen_row any = makeRowOf("b80", 0, 80);
  any.alignment = 2;
  a.add(makeRowOf("a89", 0, 89)).add(fallbackRow("a_unaligned", 0));
  b.add(any);
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  problem.alignment = 2;
  EXPECT_EQ(pick({a.get(), b.get()}, problem, device), "b80");
  EXPECT_EQ(pick({a.get()}, problem, device), "a_unaligned");
}

TEST(Dispatch, SpecOrderWithinASchedule) {
  TestTable table("k");
  table.add(makeRowOf("first", 0)).add(makeRowOf("second", 0));
  TestDevice device(89);
  EXPECT_EQ(pick({table.get()}, makeProblem(), device), "first");
}

TEST(Dispatch, OtherRowsAreReachedByName) {
  TestTable table = twoSchedules();
  fagen_row legacy = makeRowOf("legacy", 0);
  legacy.dispatch = FAGEN_ROW_BY_NAME;
  table.add(legacy);
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  for (const char *name : {"legacy", "short", "unaligned"}) {
    problem.variant = name;
    EXPECT_EQ(pick({table.get()}, problem, device), name);
  }
  problem.variant = "legacy";
  problem.alignment = 2;
  EXPECT_EQ(pick({table.get()}, problem, device), "MISALIGNED");
  problem.alignment = 16;
  problem.head_dim_qk = 128;
  EXPECT_EQ(pick({table.get()}, problem, device), "UNSUPPORTED");
  problem.variant = "nobody";
  EXPECT_EQ(pick({table.get()}, problem, device), "INVALID");
  EXPECT_STREQ(fagen_last_error(), "no row is named 'nobody'");
}

TEST(Dispatch, FeaturesAreMatchedExactly) {
  TestTable table("k");
  fagen_row bf16 = makeRowOf("bf16", 0), causal = makeRowOf("causal", 0), wide = makeRowOf("d192x128", 0);
  bf16.dtype = FAGEN_DTYPE_BF16;
  causal.mask = FAGEN_MASK_CAUSAL;
  wide.head_dim_qk = 192;
  wide.head_dim_v = 128;
  table.add(wide).add(causal).add(bf16).add(makeRowOf("plain", 0));
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  EXPECT_EQ(pick({table.get()}, problem, device), "plain");
  problem.mask = FAGEN_MASK_CAUSAL;
  EXPECT_EQ(pick({table.get()}, problem, device), "causal");
  problem.dtype = FAGEN_DTYPE_BF16;
  EXPECT_EQ(pick({table.get()}, problem, device), "UNSUPPORTED");
  problem.mask = 0;
  EXPECT_EQ(pick({table.get()}, problem, device), "bf16");
  problem.dtype = FAGEN_DTYPE_F16;
  problem.head_dim_qk = 192;
  EXPECT_EQ(pick({table.get()}, problem, device), "UNSUPPORTED");
  problem.head_dim_v = 128;
  EXPECT_EQ(pick({table.get()}, problem, device), "d192x128");
}

TEST(Dispatch, LseIsAskedFor) {
  TestTable table("k");
  fagen_row without = makeRowOf("without", 0);
  without.lse = 0;
  table.add(without).add(makeRowOf("with", 0));
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  EXPECT_EQ(pick({table.get()}, problem, device), "without");
  problem.flags = FAGEN_FLAG_LSE;
  EXPECT_EQ(pick({table.get()}, problem, device), "with");
}

TEST(Dispatch, RowsNeedCodeForTheDevice) {
  static const char bytes[] = "x";
  static const fagen_binary cubin80 = {FAGEN_BINARY_CUBIN, 80, 0, 0, bytes, 1};
  static const fagen_binary ptx80 = {FAGEN_BINARY_PTX, 80, 0, 0, bytes, 1};
  static const fagen_code onlyCubin = {nullptr, "k.cu", &cubin80, 1}, onlyPtx = {nullptr, "k.cu", &ptx80, 1};
  fagen_row row = makeRowOf("row", 0, 80);
  row.code = &onlyCubin;
  TestTable cubin("k"), ptx("k");
  cubin.add(row);
  row.code = &onlyPtx;
  ptx.add(row);
  TestDevice sm80(80), sm86(86), sm90(90), sm120(120);
  EXPECT_EQ(pick({cubin.get()}, makeProblem(), sm86), "row"); // machine code of the same major version
  EXPECT_EQ(pick({cubin.get()}, makeProblem(), sm90), "UNSUPPORTED");
  EXPECT_EQ(pick({ptx.get()}, makeProblem(), sm120), "row");
}

TEST(Dispatch, GridLimitAndEmptyProblems) {
  TestTable table("k");
  table.add(makeRowOf("row", 0));
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  problem.batch = int64_t(1) << 20;
  problem.heads = 4096;
  EXPECT_EQ(pick({table.get()}, problem, device), "UNSUPPORTED");
  EXPECT_NE(std::string(fagen_last_error()).find("1000000000 CTAs"), std::string::npos) << fagen_last_error();
  problem = makeProblem();
  fagen_choice choice = fagen_choice_init();
  fagen_choice_info info = fagen_choice_info_init();
  const fagen_table *tables[] = {table.get()};
  problem.seq_q = 129;
  ASSERT_EQ(fagen_query(tables, 1, &problem, device, &choice), FAGEN_OK) << fagen_last_error();
  ASSERT_EQ(fagen_choice_get_info(&choice, &info), FAGEN_OK);
  EXPECT_EQ(info.grid, 2u * 8u);
  problem.seq_q = 0;
  ASSERT_EQ(fagen_query(tables, 1, &problem, device, &choice), FAGEN_OK) << fagen_last_error();
  fagen_tensors tensors = fagen_tensors_init();
  EXPECT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_OK); // nothing to launch
}

fagen_row makePackedRow() {
  fagen_row row = makeRowOf("row", 0);
  row.tile_rows = 16;
  row.launches[0].grid = FAGEN_GRID_PACKED_TILES;
  return row;
}

TEST(Dispatch, GridOfPackedHeads) {
  TestTable table("k");
  table.add(makePackedRow());
  TestDevice device(89);
  const fagen_table *tables[] = {table.get()};
  ASSERT_EQ(fagen_table_check(tables[0]), FAGEN_OK) << fagen_last_error();
  const struct {
    int64_t batch, heads, kvHeads, seqQ;
    uint32_t grid;
  } problems[] = {{1, 32, 8, 1, 8}, {3, 32, 8, 4, 24}, {3, 32, 8, 5, 48}, {2, 6, 6, 17, 24},
                  {1, 12, 4, 6, 8}, {1, 64, 1, 1, 4},  {1, 8, 8, 0, 0},   {1, 0, 0, 4, 0}};
  for (const auto &p : problems) {
    fagen_problem problem = makeProblem();
    problem.batch = p.batch, problem.heads = p.heads, problem.kv_heads = p.kvHeads, problem.seq_q = p.seqQ;
    fagen_choice choice = fagen_choice_init();
    fagen_choice_info info = fagen_choice_info_init();
    ASSERT_EQ(fagen_query(tables, 1, &problem, device, &choice), FAGEN_OK) << fagen_last_error();
    ASSERT_EQ(fagen_choice_get_info(&choice, &info), FAGEN_OK);
    EXPECT_EQ(info.grid, p.grid) << p.batch << ", " << p.heads << " / " << p.kvHeads << ", " << p.seqQ;
  }
}

TEST(Dispatch, TooManyRowsOfPackedHeads) {
  TestTable table("k");
  table.add(makePackedRow());
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  problem.heads = 8, problem.kv_heads = 2;
  problem.seq_q = fagen::kMaxCount / 4;
  EXPECT_EQ(pick({table.get()}, problem, device), "row");
  ++problem.seq_q;
  EXPECT_EQ(pick({table.get()}, problem, device), "UNSUPPORTED");
  EXPECT_NE(std::string(fagen_last_error()).find("cannot number so many rows: seq_q 250000001 of each of the 4 heads"),
            std::string::npos)
      << fagen_last_error();
  problem.seq_q = 32;
  problem.batch = 1 << 29;
  EXPECT_EQ(pick({table.get()}, problem, device), "UNSUPPORTED");
  EXPECT_NE(std::string(fagen_last_error()).find("8 tiles of 16 rows for each of batch 536870912 x kv_heads 2"),
            std::string::npos)
      << fagen_last_error();
}

TEST(Dispatch, GridsGoToTheLimit) {
  fagen_row row = makeRowOf("row", 0);
  row.tile_rows = 1;
  TestTable table("k");
  table.add(row);
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  problem.heads = 2;
  problem.seq_q = fagen::kMaxCount / 2;
  EXPECT_EQ(pick({table.get()}, problem, device), "row");
  ++problem.seq_q;
  EXPECT_EQ(pick({table.get()}, problem, device), "UNSUPPORTED");
  EXPECT_NE(std::string(fagen_last_error()).find("more than 1000000000 CTAs: 500000001 tiles of 1 rows"),
            std::string::npos)
      << fagen_last_error();
}

TEST(Dispatch, PersistentCtasCountTheirKeyTiles) {
  TestTable table("k");
  for (uint32_t grid : {FAGEN_GRID_PERSISTENT, FAGEN_GRID_TILES}) {
    fagen_row row = makeRowOf(grid == FAGEN_GRID_PERSISTENT ? "persistent" : "tiles", 0);
    row.launches[0].grid = grid;
    table.add(row);
  }
  TestDevice device(89); // 58 SMs
  fagen_problem problem = makeProblem();
  problem.heads = 1;
  problem.seq_q = 128 * 58 * 4096; // 4096 tiles a CTA
  problem.seq_kv = 64 * 65536;
  EXPECT_EQ(pick({table.get()}, problem, device), "persistent"); // 2^28
  ++problem.seq_kv;
  EXPECT_EQ(pick({table.get()}, problem, device), "tiles");
  problem.variant = "persistent";
  EXPECT_EQ(pick({table.get()}, problem, device), "UNSUPPORTED");
  EXPECT_NE(std::string(fagen_last_error())
                .find("a CTA would compute 268439552 key tiles; its rings count up to "
                      "268435456"),
            std::string::npos)
      << fagen_last_error();
}

TEST(Dispatch, WorkspaceThatCannotBeComputed) {
  static const fagen_op divided[] = {
      {FAGEN_OP_CONSTANT, 0, 1}, {FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SEQ_KV}, {FAGEN_OP_DIV, 0, 0}};
  static const fagen_workspace part = {"partial", divided, 3, 16};
  fagen_row row = makeRowOf("row", 0);
  row.workspace = &part;
  row.workspace_count = 1;
  TestTable table("k");
  table.add(row);
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  EXPECT_EQ(pick({table.get()}, problem, device), "row");
  problem.seq_kv = 0;
  EXPECT_EQ(pick({table.get()}, problem, device), "UNSUPPORTED");
  EXPECT_STREQ(fagen_last_error(), "row: the size of workspace 'partial' cannot be computed for this problem");
}

TEST(Dispatch, WorkspaceIsLaidOutPerProblem) {
  static const fagen_op heads[] = {
      {FAGEN_OP_VARIABLE, 0, FAGEN_VAR_HEADS}, {FAGEN_OP_CONSTANT, 0, 4}, {FAGEN_OP_MUL, 0, 0}};
  static const fagen_op ten[] = {{FAGEN_OP_CONSTANT, 0, 10}};
  static const fagen_workspace parts[] = {{"ten", ten, 1, 1}, {"counters", heads, 3, 128}};
  fagen_row row = makeRowOf("row", 0);
  row.workspace = parts;
  row.workspace_count = 2;
  TestTable table("k");
  table.add(row);
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  fagen_choice choice = fagen_choice_init();
  const fagen_table *tables[] = {table.get()};
  ASSERT_EQ(fagen_query(tables, 1, &problem, device, &choice), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(choice.workspace_bytes, 128u + 32u);
  EXPECT_EQ(choice.workspace_alignment, 128u);
  fagen_tensors tensors = fagen_tensors_init();
  tensors.q = tensors.k = tensors.v = tensors.o = reinterpret_cast<void *>(0x1000);
  EXPECT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_WORKSPACE);
  EXPECT_EQ(fagen_run(&choice, &tensors, reinterpret_cast<void *>(0x1000), 159, nullptr), FAGEN_WORKSPACE);
  EXPECT_EQ(fagen_run(&choice, &tensors, reinterpret_cast<void *>(0x1001), 160, nullptr), FAGEN_WORKSPACE);
  EXPECT_EQ(fagen_run(&choice, &tensors, reinterpret_cast<void *>(0x1000), 160, nullptr), FAGEN_NOT_PREPARED);
}

} // namespace
