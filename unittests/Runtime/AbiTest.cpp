// fagen: other sizes and ABI numbers of the caller's structs and tables, and tables that are put together wrongly.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestTable.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace fagen::test;

extern "C" int fagen_c99_smoke(void); // HeaderC99.c

namespace {

TEST(Abi, HeaderIsC99) { EXPECT_EQ(fagen_c99_smoke(), FAGEN_INVALID); }

TEST(Abi, MismatchIsRefused) {
  TestTable table("k");
  table.add(makeRow("row"));
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  problem.abi = FAGEN_ABI + 1;
  EXPECT_EQ(pick({table.get()}, problem, device), "ABI_MISMATCH");
  EXPECT_STREQ(fagen_last_error(), "fagen_problem has abi 2, this library 1");
  fagen_table other = *table.get();
  other.abi = FAGEN_ABI + 1;
  EXPECT_EQ(pick({&other}, makeProblem(), device), "ABI_MISMATCH");
  EXPECT_STREQ(fagen_last_error(), "fagen_table has abi 2, this library 1");
}

TEST(Abi, ShorterProblemHasItsTailAbsent) {
  TestTable table("k");
  table.add(makeRow("row"));
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  problem.variant = "nobody";
  problem.struct_size = offsetof(fagen_problem, variant);
  EXPECT_EQ(pick({table.get()}, problem, device), "row");
  problem.struct_size = 4;
  EXPECT_EQ(pick({table.get()}, problem, device), "INVALID");
}

TEST(Abi, ProblemOfBeforeThereWereFormsHasNone) {
  TestTable table("k");
  table.add(makeRow("row"));
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  problem.form = "nobody";
  problem.struct_size = offsetof(fagen_problem, form);
  EXPECT_EQ(pick({table.get()}, problem, device), "row");
}

TEST(Abi, TableOfBeforeThereWereFormsHasNone) {
  TestTable table("k");
  table.add(makeRow("row")).claim("seq_q <= 16", seqQAtMost(16));
  fagen_table older = *table.get();
  older.struct_size = offsetof(fagen_table, forms);
  older.form_count = 7;
  EXPECT_EQ(fagen_table_check(&older), FAGEN_OK) << fagen_last_error();
  static constexpr fagen_op kBad[] = {{FAGEN_OP_LE, 0, 0}};
  older.claim = kBad;
  older.claim_size = 1; // its claim is looked at
  EXPECT_EQ(fagen_table_check(&older), FAGEN_INVALID);
}

TEST(Abi, LongerProblemMustNotSetWhatIsUnknown) {
  TestTable table("k");
  table.add(makeRow("row"));
  TestDevice device(89);
  struct {
    fagen_problem problem;
    uint64_t later;
  } larger = {makeProblem(), 0};
  larger.problem.struct_size = sizeof(larger);
  EXPECT_EQ(pick({table.get()}, larger.problem, device), "row");
  larger.later = 1;
  EXPECT_EQ(pick({table.get()}, larger.problem, device), "UNSUPPORTED");
}

/// A row of counters (64 B) and, after them, 1000 B that may hold anything.
fagen_row countingRow() {
  static constexpr fagen_op kCounters[] = {{FAGEN_OP_CONSTANT, 0, 60}}, kScratch[] = {{FAGEN_OP_CONSTANT, 0, 1000}};
  static constexpr fagen_workspace kParts[] = {{"counters", kCounters, 1, 4}, {"scratch", kScratch, 1, 64}};
  fagen_row row = makeRow("row");
  row.workspace = kParts;
  row.workspace_count = 2;
  row.scratch_parts = 1;
  return row;
}

TEST(Abi, LeadingBytesOfTheWorkspaceMustBeZero) {
  TestDevice device(89);
  fagen_row row = countingRow();
  for (const auto &[scratchParts, zeroBytes] : {std::pair(1u, 60u), {2u, 0u}, {0u, 1064u}}) { // 0: it does not say
    row.scratch_parts = scratchParts;
    const QueriedRow queried(row, makeProblem(), device);
    ASSERT_EQ(queried.status, FAGEN_OK) << fagen_last_error();
    EXPECT_EQ(queried.choice.workspace_bytes, 1064u);
    EXPECT_EQ(fagen_choice_zero_bytes(&queried.choice), zeroBytes);
  }
  row.scratch_parts = 3;
  EXPECT_EQ(QueriedRow(row, makeProblem(), device).status, FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "table k, row 0 (row): has more scratch parts than parts of the workspace");
}

TEST(Abi, ShorterChoiceIsNotWrittenBeyond) {
  TestDevice device(89);
  TestTable table("k");
  const fagen_table *tables[] = {table.add(countingRow()).get()};
  const fagen_problem problem = makeProblem();
  fagen_choice choice = fagen_choice_init();
  choice.struct_size = offsetof(fagen_choice, scratch_bytes);
  choice.scratch_bytes = 77;
  ASSERT_EQ(fagen_query(tables, 1, &problem, device, &choice), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(choice.scratch_bytes, 77u);
  choice.struct_size -= 8;
  EXPECT_EQ(fagen_query(tables, 1, &problem, device, &choice), FAGEN_INVALID);
}

TEST(Abi, RowsMayBeLarger) {
  struct LargerRow {
    fagen_row row;
    uint64_t later;
  };
  LargerRow rows[] = {{makeRow("row0"), 1}, {makeRow("row1"), 2}};
  rows[1].row.head_dim_qk = rows[1].row.head_dim_v = 128;
  TestTable base("k");
  base.add(rows[0].row).add(rows[1].row);
  fagen_table table = *base.get();
  table.rows = &rows[0].row;
  table.row_size = sizeof(LargerRow);
  rows[1].row.order = 1;
  EXPECT_EQ(fagen_table_check(&table), FAGEN_OK) << fagen_last_error();
  fagen_problem problem = makeProblem();
  problem.head_dim_qk = 128;
  TestDevice device(89);
  EXPECT_EQ(pick({&table}, problem, device), "row1");
}

TEST(Abi, TableCheckFindsMistakes) {
  TestTable good("k");
  fagen_row second = makeRow("second");
  second.head_dim_qk = second.head_dim_v = 128;
  good.add(makeRow("first")).add(second);
  const fagen_table &table = *good.get();
  ASSERT_EQ(fagen_table_check(&table), FAGEN_OK) << fagen_last_error();

  auto refuses = [&](auto change, const char *reason) {
    fagen_row rows[2] = {table.rows[0], table.rows[1]};
    uint64_t keys[2] = {table.keys[0], table.keys[1]};
    fagen_table broken = table;
    broken.rows = rows;
    broken.keys = keys;
    change(broken, rows, keys);
    EXPECT_EQ(fagen_table_check(&broken), FAGEN_INVALID) << reason;
    EXPECT_NE(strstr(fagen_last_error(), reason), nullptr) << fagen_last_error();
  };
  refuses([](auto &, auto *rows, auto *) { rows[1].head_dim_v = 64; }, "its key is not fagen_row_key of it");
  refuses(
      [](auto &, auto *rows, auto *keys) {
        std::swap(rows[0], rows[1]);
        std::swap(keys[0], keys[1]);
      },
      "keys do not ascend");
  refuses([](auto &, auto *rows, auto *) { rows[0].schedule = 1; }, "schedule is out of range");
  refuses([](auto &, auto *rows, auto *) { rows[0].launch_count = 5; }, "launch_count is not 1 to 4");
  refuses([](auto &, auto *rows, auto *) { rows[0].launches[0].threads = 0; }, "a launch has no symbol");
  refuses([](auto &, auto *rows, auto *) { rows[0].dependent_launches = 2; },
          "a launch that it does not have is dependent");
  static constexpr fagen_map kWide = {FAGEN_MAP_K, 64, 257, 128, 0}, kUnfilled = {FAGEN_MAP_K, 64, 128, 64, 0},
                             kManyPanels = {FAGEN_MAP_K, 32, 128, 64, 9}, kPartPanel = {FAGEN_MAP_K, 24, 128, 0, 1},
                             kTwice[] = {{FAGEN_MAP_O, 32, 64, 64, 0}, {FAGEN_MAP_O, 32, 64, 64, 0}};
  for (const fagen_map *map : {&kWide, &kUnfilled, &kManyPanels, &kPartPanel})
    refuses([&](auto &, auto *rows, auto *) { rows[0].maps = map, rows[0].map_count = 1; }, "a map is of no tensor");
  refuses([](auto &, auto *rows, auto *) { rows[0].maps = kTwice, rows[0].map_count = 2; }, "a map is of no tensor");
  refuses([](auto &, auto *rows, auto *) { rows[0].alignment = 3; }, "alignment is not a power of two");
  refuses([](auto &t, auto *, auto *) { t.select_count = 0; }, "does not end in an otherwise line");
  refuses([](auto &t, auto *, auto *) { t.row_size = 8; }, "has rows of 8 bytes");
}

TEST(Abi, NullArgumentsAreInvalid) {
  fagen_choice choice = fagen_choice_init();
  fagen_problem problem = makeProblem();
  TestDevice device(89);
  EXPECT_EQ(fagen_query(nullptr, 1, &problem, device, &choice), FAGEN_INVALID);
  EXPECT_EQ(fagen_query(nullptr, 0, nullptr, device, &choice), FAGEN_INVALID);
  EXPECT_EQ(fagen_query(nullptr, 0, &problem, nullptr, &choice), FAGEN_INVALID);
  EXPECT_EQ(fagen_query(nullptr, 0, &problem, device, nullptr), FAGEN_INVALID);
  EXPECT_EQ(fagen_query(nullptr, 0, &problem, device, &choice), FAGEN_UNSUPPORTED);
  EXPECT_EQ(fagen_prepare(&choice, device), FAGEN_INVALID);
  fagen_tensors tensors = fagen_tensors_init();
  EXPECT_EQ(fagen_run(&choice, &tensors, nullptr, 0, nullptr), FAGEN_INVALID);
  EXPECT_EQ(fagen_device_create(-2, nullptr), FAGEN_INVALID);
  fagen_device_destroy(nullptr);
}

TEST(Abi, RunChecksPointers) {
  TestTable table("k");
  fagen_row row = makeRow("row");
  row.lse = 0;
  table.add(row);
  TestDevice device(89);
  fagen_problem problem = makeProblem();
  fagen_choice choice = fagen_choice_init();
  const fagen_table *tables[] = {table.get()};
  ASSERT_EQ(fagen_query(tables, 1, &problem, device, &choice), FAGEN_OK) << fagen_last_error();
  auto pointer = [](uintptr_t address) { return reinterpret_cast<void *>(address); };
  auto run = [&](fagen_tensors tensors) { return fagen_run(&choice, &tensors, nullptr, 0, nullptr); };
  fagen_tensors good = fagen_tensors_init();
  good.q = pointer(0x100);
  good.k = pointer(0x200);
  good.v = pointer(0x300);
  good.o = pointer(0x400);
  EXPECT_EQ(run(good), FAGEN_NOT_PREPARED);
  fagen_tensors bad = good;
  bad.struct_size = offsetof(fagen_tensors, args); // of before there were forms
  EXPECT_EQ(run(bad), FAGEN_NOT_PREPARED);
  bad.struct_size -= 8;
  EXPECT_EQ(run(bad), FAGEN_INVALID);
  bad = good;
  bad.k = nullptr;
  EXPECT_EQ(run(bad), FAGEN_INVALID);
  EXPECT_STREQ(fagen_last_error(), "k is NULL and seq_kv is 512");
  bad = good;
  bad.o = pointer(0x408);
  EXPECT_EQ(run(bad), FAGEN_MISALIGNED);
  bad = good;
  bad.lse = static_cast<float *>(pointer(0x500));
  EXPECT_EQ(run(bad), FAGEN_INVALID);
  bad = good;
  bad.abi = 7;
  EXPECT_EQ(run(bad), FAGEN_ABI_MISMATCH);
}

} // namespace
