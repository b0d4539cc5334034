// fagen: problems that take every loop of a row's kernels into its steady state.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "steady.h"
#include "edges.h"

#include "lab/cases/abi.h"
#include "lab/device/case_memory.h"
#include "lab/kernel_set/forms.h"
#include "runtime/src/dispatch.h"
#include "runtime/src/state.h"

#include <algorithm>

namespace fagen::lab {

namespace {

/// A mistake may begin with any of the first steps, so a loop takes these even where its ring is short.
constexpr int64_t kFewestSteps = 6, kTurnsOfRing = 2;
constexpr int64_t kTilesOfCta = 3, kLongTilesOfCta = 2;
constexpr int64_t kHeadsOfGroup = 2; ///< where a tile has the rows of several heads
constexpr int64_t kGroupRows = 64;   ///< of a warp group's product

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

class SteadyProblems {
public:
  SteadyProblems(const KernelSet &set, const fagen_row &row, const fagen_device *device)
      : set(set), row(row), device(device), steps(std::max(kTurnsOfRing * set.facts(row).stages + 1, kFewestSteps)) {}

  std::vector<Case> all() const {
    std::vector<Case> cases = {briefTiles(), longTiles(), withRisingMaximum(), withLeaps()};
    if (!isSplit())
      cases.push_back(withSteepMaximum());
    if (ctasAtATime())
      cases.push_back(tilesThatFillRing());
    if (const FormPtr form = set.form(row)) {
      const std::vector<Case> edges =
          edgeCases(caseOfRow(set, row), *form, row.tile_rows, row.tile_keys, packsHeads(row) ? kHeadsOfGroup : 1);
      cases.insert(cases.begin(), edges.begin(), edges.end()); // small, and the first to fail
    }
    return cases;
  }

private:
  /// A form's windows are longer than the keys: every tile up to the query's own is visited.
  Case base() const {
    Case c = caseOfRow(set, row);
    if (const FormPtr form = set.form(row))
      c.numbers = usualNumbers(*form, {});
    return c;
  }

  /// Keys that the first row of a causal tile does not see, but its last one does.
  int64_t diagonal(const Case &c) const { return c.mask == Mask::Causal ? c.shape.seqQ : 0; }

  /// Short tiles of many heads and batches, with so many keys.
  Case manyTiles(int64_t keys) const {
    Case c = base();
    c.shape.heads = 6;
    c.shape.kvHeads = 3;
    c.shape.seqQ = row.tile_rows / 2 + 1;
    c.shape.seqKv = keys;
    const int64_t tiles = kTilesOfCta * ctasAtATime() + 1;
    c.shape.batch = std::max<int64_t>(3, ceilDiv(tiles, c.shape.heads * tilesOfHead()));
    return c;
  }

  /// Two key tiles at most: a longer tile's waits for K and V also order what only the waits between tiles should.
  Case briefTiles() const { return manyTiles(row.tile_keys + row.tile_keys / 2); }

  /// Tiles that a CTA takes one after the other fill its ring exactly: what comes first for the next tile then waits
  /// for nothing but the slot.
  Case tilesThatFillRing() const {
    Case c = manyTiles(0);
    c.shape.seqKv = (set.facts(row).stages - 1) * row.tile_keys + row.tile_keys / 2;
    return c;
  }

  bool isCausal() const { return row.mask == FAGEN_MASK_CAUSAL; }

  /// Tiles of rows that take `steps` whole key tiles; where causal, and a part of one.
  Case longTiles() const { return longTiles(kLongTilesOfCta, isCausal() ? causalTail() : 0); }

  /// Keys after the whole tiles. The last row of the first warp group then sees all of its last key tile but one key,
  /// and the group after it sees a tile more: the first group skips that one. A tile that is no longer than a group
  /// has rows is skipped in any case.
  int64_t causalTail() const {
    return row.tile_keys > kGroupRows ? row.tile_keys - kGroupRows - 1 : row.tile_keys / 2 + 1;
  }

  /// Without a last row, and with a part of a key tile, so that its step is done again, too; where causal, the diagonal
  /// leaves one key tile for the next.
  Case withRisingMaximum(int64_t tilesOfCta = 1) const {
    Case c = longTiles(tilesOfCta, isCausal() ? row.tile_keys - 4 : row.tile_keys / 2 + 1);
    c.inputs = Inputs::Rising;
    c.shape.seqQ -= 1;
    return c;
  }

  /// In so few key tiles that no factor brings a row's terms down: by 2^149 from key tile to key tile, and by 2^134 at
  /// the last, of bf16 from 2^-20 on. Scores are taken again, of masked tiles, too, while the next tile of rows waits
  /// for their slots.
  Case withSteepMaximum() const {
    Case c = withRisingMaximum(kLongTilesOfCta);
    c.shape.seqKv = 2 * row.tile_keys + row.tile_keys * 9 / 10;
    return c;
  }

  /// Warps that find larger scores in different steps, or in none; of two heads, since these differ in how much larger.
  Case withLeaps() const {
    Case c = withRisingMaximum();
    c.inputs = Inputs::Leaps;
    c.shape.heads = c.shape.kvHeads = std::max<int64_t>(c.shape.heads, 2);
    return c;
  }

  /// So many tiles of rows for each CTA of a persistent grid, with `tail` keys after the whole tiles.
  Case longTiles(int64_t tilesOfCta, int64_t tail) const {
    Case c = base();
    c.shape.heads = std::max<int64_t>(1, ceilDiv(tilesOfCta * ctasAtATime(), tilesOfHead()));
    if (isSplit()) {
      // Few tiles would have as many splits as key tiles then.
      const bool fillsGpu = row.launches[0].reserved == 0 || row.launches[0].reserved == FAGEN_SPLITS_OF_SHARED;
      c.shape.batch = fillsGpu ? 2 : 1;
      c.shape.heads = fillsGpu ? 4 : 2;
    }
    c.shape.kvHeads = c.shape.heads;
    c.shape.seqQ = int64_t{row.tile_rows} * clusterOf(row.launches[0]);
    auto takeSteps = [&](int64_t count) { c.shape.seqKv = diagonal(c) + count * row.tile_keys + tail; };
    int64_t count = steps;
    takeSteps(count);
    while (isSplit() && (count < 2 * steps || count / splitsOf(c) < steps))
      takeSteps(++count);
    return c;
  }

  /// Whether keys are split by how many there are. Splits of fixed keys are as long as they can be in any long tile.
  bool isSplit() const {
    return row.launches[0].grid == FAGEN_GRID_SPLITS || row.launches[0].grid == FAGEN_GRID_PACKED_SPLITS;
  }

  /// As dispatch chooses; 1 where it refuses the row.
  int64_t splitsOf(const Case &drawn) const {
    const Case c = withForm(drawn, set.form(row), 1);
    const Placements places(c);
    fagen_problem problem = describeProblem(c, places);
    problem.variant = row.variant;
    const fagen_table *table = set.table();
    fagen_choice choice = makeAbi<fagen_choice>();
    return fagen_query(&table, 1, &problem, device, &choice) == FAGEN_OK ? loadState(choice).params.splits : 1;
  }

  /// CTAs of a persistent grid; 0: each tile has one of its own.
  int64_t ctasAtATime() const {
    const fagen_launch &launch = row.launches[0];
    if (launch.grid != FAGEN_GRID_PERSISTENT && launch.grid != FAGEN_GRID_CLUSTERS)
      return 0;
    fagen_device_info info = makeAbi<fagen_device_info>();
    fagen_device_get_info(device, &info);
    return std::max<int64_t>(1, info.sm_count / clusterOf(launch)) * clusterOf(launch);
  }

  /// Of no more rows than a tile has.
  int64_t tilesOfHead() const { return tilesOfRows(row, row.tile_rows); }

  const KernelSet &set;
  const fagen_row &row;
  const fagen_device *device;
  const int64_t steps;
};

} // namespace

std::vector<Case> steadyCases(const KernelSet &set, const fagen_row &row, const fagen_device *device) {
  return SteadyProblems(set, row, device).all();
}

} // namespace fagen::lab
