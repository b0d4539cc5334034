// fagen: rows whose keys several CTAs share: how many, their grids and their workspace.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestForms.h"
#include "state.h"

#include <gtest/gtest.h>

using namespace fagen::test;

namespace {

/// 16 rows x 64 keys a tile; 100 bytes of workspace a split and query row.
fagen_row splitRow(uint32_t grid, uint32_t number) {
  static const fagen_op bytes[] = {{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SPLITS},
                                   {FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SEQ_Q},
                                   {FAGEN_OP_MUL, 0, 0},
                                   {FAGEN_OP_CONSTANT, 0, 100},
                                   {FAGEN_OP_MUL, 0, 0}};
  static const fagen_workspace part = {"splits", bytes, 5, 16};
  fagen_row row = makeRow("row");
  row.tile_rows = 16;
  row.launch_count = 2;
  row.launches[0] = {"k", grid, 128, 48 * 1024, number};
  row.launches[1] = {"k_combine", FAGEN_GRID_ROWS, 128, 0, 0};
  row.workspace = &part;
  row.workspace_count = 1;
  return row;
}

struct Queried {
  uint32_t splits, grid, combineGrid;
  size_t workspace;
};

Queried query(const fagen_row &row, const fagen_problem &problem, const fagen_device *device) {
  const QueriedRow queried(row, problem, device);
  EXPECT_EQ(queried.status, FAGEN_OK) << fagen_last_error();
  const fagen::ChoiceState state = fagen::loadState(queried.choice);
  fagen_choice_info info = fagen_choice_info_init();
  EXPECT_EQ(fagen_choice_get_info(&queried.choice, &info), FAGEN_OK);
  const uint32_t grid = gridOf(row.launches[0], state);
  EXPECT_EQ(info.grid, grid);
  return {uint32_t(state.params.splits), grid, gridOf(row.launches[1], state), queried.choice.workspace_bytes};
}

/// heads query rows against `keys`.
fagen_problem decode(int64_t batch, int64_t heads, int64_t keys) {
  fagen_problem problem = makeProblem();
  problem.batch = batch;
  problem.heads = heads;
  problem.seq_q = 1;
  problem.seq_kv = keys;
  return problem;
}

TEST(Split, ANumberIsTaken) {
  TestDevice device(89);
  fagen_problem problem = decode(2, 8, 4096);
  problem.seq_q = 17; // two tiles
  const Queried queried = query(splitRow(FAGEN_GRID_SPLITS, 3), problem, device);
  EXPECT_EQ(queried.splits, 3u);
  EXPECT_EQ(queried.grid, 2u * 8 * 2 * 3);
  EXPECT_EQ(queried.combineGrid, (2u * 8 * 17 + 3) / 4); // a warp a row
  EXPECT_EQ(queried.workspace, 3u * 17 * 100);
}

TEST(Split, AutoFillsTheGpu) {
  TestDevice h200(90, 132), l4(89, 58);
  const fagen_row row = splitRow(FAGEN_GRID_SPLITS, 0);
  auto splits = [&](int64_t batch, int64_t heads, int64_t keys, const fagen_device *device) {
    return query(row, decode(batch, heads, keys), device).splits;
  };
  EXPECT_EQ(splits(1, 8, 65536, h200), 16u); // 128 CTAs of 132
  EXPECT_EQ(splits(1, 8, 65536, l4), 7u);
  EXPECT_EQ(splits(16, 8, 65536, h200), 1u); // 128 CTAs as they are
  EXPECT_EQ(splits(9, 8, 65536, h200), 11u); // 72 CTAs would leave half the GPU idle; 792 are six full turns
  EXPECT_EQ(splits(64, 32, 65536, h200), 1u);
  EXPECT_EQ(splits(1, 1, 65536, h200), 128u); // no more than that
  EXPECT_EQ(splits(1, 8, 256, h200), 4u);     // a tile each
  EXPECT_EQ(splits(1, 8, 64, h200), 1u);
  EXPECT_EQ(splits(1, 8, 0, h200), 1u);
}

/// As a window has it: min(ceil((window + 16) / 64), ceil(seq_kv / 64)).
constexpr fagen_op kTilesOfWindow[] = {{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_FORM_0 + 1},
                                       {FAGEN_OP_CONSTANT, 0, 16},
                                       {FAGEN_OP_ADD, 0, 0},
                                       {FAGEN_OP_CONSTANT, 0, 64},
                                       {FAGEN_OP_CEIL_DIV, 0, 0},
                                       {FAGEN_OP_VARIABLE, 0, FAGEN_VAR_SEQ_KV},
                                       {FAGEN_OP_CONSTANT, 0, 64},
                                       {FAGEN_OP_CEIL_DIV, 0, 0},
                                       {FAGEN_OP_MIN, 0, 0}};

/// A form's row whose splits share so many key tiles; cap and window are its params.
struct SharedTiles {
  std::vector<fagen_op> program;
  std::vector<fagen_arg> args{real("cap", 50), number("window", 1024)};
  TestTable table{"k"};

  uint32_t splits(fagen_problem problem, const fagen_device *device) {
    fagen_row row = splitRow(FAGEN_GRID_SPLITS, FAGEN_SPLITS_OF_SHARED);
    row.mask = FAGEN_MASK_FORM_0;
    row.shared_tiles = program.data();
    row.shared_tiles_size = uint32_t(program.size());
    const fagen_table *tables[] = {table.forms({makeForm("gemma2", "gemma2", kCapWindow)}).add(row).get()};
    EXPECT_EQ(fagen_table_check(tables[0]), FAGEN_OK) << fagen_last_error();
    problem.form = "gemma2";
    problem.args = args.data();
    problem.arg_count = uint32_t(args.size());
    fagen_choice choice = fagen_choice_init();
    EXPECT_EQ(fagen_query(tables, 1, &problem, device, &choice), FAGEN_OK) << fagen_last_error();
    return uint32_t(fagen::loadState(choice).params.splits);
  }
};

TEST(Split, AutoAsksForTheKeysThatAreSeen) {
  TestDevice h200(90, 132);
  auto splits = [&](int64_t window, int64_t keys, int64_t batch = 1) {
    SharedTiles shared{{std::begin(kTilesOfWindow), std::end(kTilesOfWindow)}};
    shared.args[1].i32 = window;
    return shared.splits(decode(batch, 8, keys), h200);
  };
  EXPECT_EQ(splits(4096, 65536), 13u); // 65 tiles, five a split
  EXPECT_EQ(splits(1024, 65536), 9u);  // 17 tiles, two a split
  EXPECT_EQ(splits(100, 65536), 2u);   // 2 tiles
  EXPECT_EQ(splits(1, 65536), 1u);     // one tile
  EXPECT_EQ(splits(4096, 256), 4u);    // no more than there are
  EXPECT_EQ(splits(4096, 65536, 64), 1u);
}

TEST(Split, AutoTakesAllKeysWhereTheNumberIsOnTheDevice) {
  TestDevice h200(90, 132);
  SharedTiles shared{{std::begin(kTilesOfWindow), std::end(kTilesOfWindow)}};
  alignas(16) static int32_t onDevice;
  shared.args[1].data = &onDevice;
  EXPECT_EQ(shared.splits(decode(1, 8, 65536), h200), 16u);
}

TEST(Split, AutoTakesOneSplitWhereNoKeyIsSeen) {
  TestDevice h200(90, 132);
  for (int64_t tiles : {0, -5})
    EXPECT_EQ((SharedTiles{{{FAGEN_OP_CONSTANT, 0, tiles}}}.splits(decode(1, 8, 65536), h200)), 1u);
}

TEST(Split, AutoTakesAllKeysWhereTheProgramHasNoValue) {
  TestDevice h200(90, 132);
  const std::vector<fagen_op> program = {
      {FAGEN_OP_CONSTANT, 0, 1}, {FAGEN_OP_CONSTANT, 0, 0}, {FAGEN_OP_FLOOR_DIV, 0, 0}};
  EXPECT_EQ(SharedTiles{program}.splits(decode(1, 8, 65536), h200), 16u);
}

TEST(Split, AutoAsksTheTilesOfRowsThatSeeTheMost) {
  TestDevice h200(90, 132);
  fagen_problem problem = decode(1, 1, 65536);
  auto splitsIfOneSees = [&](int64_t row) { // 40 tiles where a tile of rows begins there, else none
    return SharedTiles{{{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_ROW},
                        {FAGEN_OP_CONSTANT, 0, row},
                        {FAGEN_OP_EQ, 0, 0},
                        {FAGEN_OP_CONSTANT, 0, 40},
                        {FAGEN_OP_MUL, 0, 0}}}
        .splits(problem, h200);
  };
  problem.seq_q = 3 * 16 - 5; // tiles begin at 0, 16 and 32
  for (int64_t row : {0, 16, 32})
    EXPECT_EQ(splitsIfOneSees(row), 20u) << row;
  EXPECT_EQ(splitsIfOneSees(48), 1u);
  problem.seq_q = 31 * 16; // every second tile is asked
  EXPECT_EQ(splitsIfOneSees(30 * 16), 4u);
  EXPECT_EQ(splitsIfOneSees(2 * 16), 4u);
  EXPECT_EQ(splitsIfOneSees(3 * 16), 1u);
}

TEST(Split, ProgramsOfSharedTilesAreChecked) {
  fagen_row row = splitRow(FAGEN_GRID_SPLITS, FAGEN_SPLITS_OF_SHARED);
  auto refusal = [&](std::vector<fagen_op> program) {
    row.shared_tiles = program.data();
    row.shared_tiles_size = uint32_t(program.size());
    TestTable table("k");
    return fagen_table_check(table.add(row).get()) == FAGEN_OK ? "" : std::string(fagen_last_error());
  };
  EXPECT_EQ(refusal({{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_ROW}}), "");
  EXPECT_EQ(refusal({{FAGEN_OP_VARIABLE, 0, FAGEN_VAR_FORM_0}}), "table k, row 0 (row): has an unknown variable");
  EXPECT_EQ(refusal({{FAGEN_OP_FLOOR_DIV + 1, 0, 0}}), "table k, row 0 (row): has an unknown operation");
  EXPECT_EQ(refusal({{FAGEN_OP_MIN, 0, 0}}), "table k, row 0 (row): lacks an operand");
}

/// Rows of tables that were compiled before end before shared_tiles: nothing after is read.
TEST(Split, RowsOfOlderTablesEndBeforeSharedTiles) {
  TestDevice h200(90, 132);
  constexpr size_t kSize = offsetof(fagen_row, shared_tiles);
  auto withShortRows = [&](TestTable &table, const fagen_row &row) {
    fagen_table made = *table.add(row).get();
    made.row_size = kSize;
    return made;
  };
  TestTable older("k"), wrong("k");
  const fagen_table table = withShortRows(older, splitRow(FAGEN_GRID_SPLITS, 0)), *const tables[] = {&table};
  EXPECT_EQ(fagen_table_check(tables[0]), FAGEN_OK) << fagen_last_error();
  const fagen_problem problem = decode(1, 8, 65536);
  fagen_choice choice = fagen_choice_init();
  EXPECT_EQ(fagen_query(tables, 1, &problem, h200, &choice), FAGEN_OK) << fagen_last_error();
  EXPECT_EQ(fagen::loadState(choice).params.splits, 16);
  const fagen_table refused = withShortRows(wrong, splitRow(FAGEN_GRID_SPLITS, FAGEN_SPLITS_OF_SHARED));
  EXPECT_NE(fagen_table_check(&refused), FAGEN_OK);
  EXPECT_NE(std::string(fagen_last_error()).find("has no room for shared_tiles"), std::string::npos);
}

TEST(Split, TilesOfManyRowsComeInPairs) {
  TestDevice h200(90, 132);
  fagen_problem problem = decode(1, 8, 16384);
  problem.seq_q = 512;
  auto splits = [&](uint32_t rows, uint32_t threads, uint32_t bytes) {
    fagen_row row = splitRow(FAGEN_GRID_SPLITS, 0);
    row.tile_rows = rows;
    row.launches[0].threads = threads;
    row.launches[0].shared_bytes = bytes;
    return query(row, problem, h200).splits;
  };
  EXPECT_EQ(splits(64, 128, 48 * 1024), 4u);  // 64 tiles: 256 CTAs, two an SM
  EXPECT_EQ(splits(128, 128, 48 * 1024), 8u); // 32 tiles
  problem.seq_kv = 262144;
  EXPECT_EQ(splits(128, 128, 48 * 1024), 8u); // 33 would leave fewer places idle, and four times as much to merge
  problem.seq_kv = 16384;
  EXPECT_EQ(splits(64, 256, 48 * 1024), 2u);  // as many threads as have all registers
  EXPECT_EQ(splits(64, 128, 114 * 1024), 2u); // only one fits
}

TEST(Split, FixedKeysDependOnNothingElse) {
  TestDevice h200(90, 132), l4(89, 58);
  const fagen_row row = splitRow(FAGEN_GRID_SPLIT_KEYS, 512);
  for (const fagen_device *device : {static_cast<fagen_device *>(h200), static_cast<fagen_device *>(l4)})
    for (int64_t batch : {1, 100})
      EXPECT_EQ(query(row, decode(batch, 8, 65537), device).splits, 129u);
  EXPECT_EQ(query(row, decode(1, 8, 512), h200).splits, 1u);
  EXPECT_EQ(query(row, decode(1, 8, 513), h200).splits, 2u);
  EXPECT_EQ(query(row, decode(1, 8, 0), h200).splits, 1u);
}

TEST(Split, GridsBeyondTheLimitAreUnsupported) {
  TestDevice device(89);
  fagen_problem problem = decode(1 << 20, 32, 4096);
  TestTable table("k");
  table.add(splitRow(FAGEN_GRID_SPLITS, 128)); // 2^32 CTAs
  EXPECT_EQ(pick({table.get()}, problem, device), "UNSUPPORTED");
  problem.batch = 1;
  problem.heads = problem.kv_heads = 4;
  problem.seq_q = 250000000; // of 4 heads: as many rows to merge as may be
  TestTable two("k");
  two.add(splitRow(FAGEN_GRID_SPLITS, 2));
  EXPECT_EQ(pick({two.get()}, problem, device), "row") << fagen_last_error();
  ++problem.seq_q;
  EXPECT_EQ(pick({two.get()}, problem, device), "UNSUPPORTED");
}

TEST(Split, TablesAreChecked) {
  const fagen_row row = splitRow(FAGEN_GRID_SPLITS, 2);
  EXPECT_EQ(refusalOfLaunch(row, 0, FAGEN_GRID_SPLITS, 128), "");
  EXPECT_EQ(refusalOfLaunch(row, 0, FAGEN_GRID_SPLITS, 129), kUnknownLaunch);
  EXPECT_EQ(refusalOfLaunch(row, 1, FAGEN_GRID_SPLITS, 2), kUnknownLaunch);
  EXPECT_EQ(refusalOfLaunch(row, 0, FAGEN_GRID_SPLIT_KEYS, 0), kUnknownLaunch);
  EXPECT_EQ(refusalOfLaunch(row, 1, FAGEN_GRID_SPLIT_KEYS, 512), kUnknownLaunch);
  EXPECT_EQ(refusalOfLaunch(row, 0, FAGEN_GRID_KEY_TILES, 0), kUnknownLaunch);
  EXPECT_EQ(refusalOfLaunch(row, 1, FAGEN_GRID_KEY_TILES, 0),
            "table k, row 0 (row): has a launch of key tiles and no scratch for it");
  EXPECT_EQ(refusalOfLaunch(row, 1, FAGEN_GRID_KEY_TILES + 1, 0), kUnknownLaunch);
}

} // namespace
