// fagen: rows whose keys several CTAs share: how many, their grids and their workspace.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestTable.h"
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
