// fagen: rows whose CTAs run in clusters: whole clusters of tiles and of CTAs.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestTable.h"
#include "arguments.h"
#include "state.h"

#include <gtest/gtest.h>

using namespace fagen::test;

namespace {

fagen_row clusterRow(uint32_t ctas) {
  fagen_row row = makeRow("row");
  row.launches[0] = {"k", FAGEN_GRID_CLUSTERS, 384, 96 * 1024, ctas};
  return row;
}

fagen::ChoiceState query(const fagen_row &row, int64_t seq_q, const fagen_device *device) {
  fagen_problem problem = makeProblem();
  problem.heads = problem.kv_heads = 3;
  problem.seq_q = seq_q;
  const QueriedRow queried(row, problem, device);
  EXPECT_EQ(queried.status, FAGEN_OK) << fagen_last_error();
  return fagen::loadState(queried.choice);
}

TEST(Cluster, GridsAreWholeClustersOfSmsOrOfTiles) {
  TestDevice h200(90, 132), odd(90, 5), one(90, 1);
  const auto grid = [](const fagen_device *device, int64_t seq_q) { return query(clusterRow(2), seq_q, device).ctas; };
  EXPECT_EQ(grid(h200, 1 << 20), 132u);
  EXPECT_EQ(grid(odd, 1 << 20), 4u);
  EXPECT_EQ(grid(one, 1 << 20), 2u);
  EXPECT_EQ(grid(h200, 100), 6u); // a tile of each of three heads, and one after each
  EXPECT_EQ(grid(h200, 256), 6u);
  EXPECT_EQ(grid(h200, 257), 12u);
}

TEST(Cluster, KernelsDivideByWholeClusters) {
  TestDevice device(90, 132);
  for (uint32_t ctas : {2u, 4u}) {
    const fagen_row row = clusterRow(ctas);
    const fagen::ChoiceState state = query(row, 600, device); // 5 tiles
    const auto params = fagen::argumentsOf(row, state.params, fagen_tensors_init(), nullptr);
    const int tiles = ctas == 2 ? 6 : 8;
    EXPECT_EQ(fagen::device::floor_div(tiles - 1, params.by_tiles), 0);
    EXPECT_EQ(fagen::device::floor_div(tiles, params.by_tiles), 1);
  }
}

TEST(Cluster, TablesAreChecked) {
  fagen_row row = clusterRow(2);
  row.launch_count = 2;
  row.launches[1] = row.launches[0];
  row.launches[1].grid = FAGEN_GRID_ROWS;
  EXPECT_EQ(refusalOfLaunch(row, 0, FAGEN_GRID_CLUSTERS, 8), "");
  EXPECT_EQ(refusalOfLaunch(row, 0, FAGEN_GRID_CLUSTERS, 1), kUnknownLaunch);
  EXPECT_EQ(refusalOfLaunch(row, 0, FAGEN_GRID_CLUSTERS, 9), kUnknownLaunch);
  EXPECT_EQ(refusalOfLaunch(row, 1, FAGEN_GRID_CLUSTERS, 2), kUnknownLaunch);
}

} // namespace
