// fagen: which row of which table computes a problem on a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "device.h"
#include "forms/forms.h"

namespace fagen {

/// Row i of a table, whose rows may be larger than this library's.
inline const fagen_row &rowAt(const fagen_table &table, uint32_t i) {
  return *reinterpret_cast<const fagen_row *>(reinterpret_cast<const char *>(table.rows) + size_t(i) * table.row_size);
}

/// The rows [begin, end) of one problem key.
struct RowRange {
  uint32_t begin = 0, end = 0;
};
RowRange rowsOf(const fagen_table &table, uint64_t problemKey);

/// Calls it with each row of the tables that is for the problem, and the row's table.
template <typename Visit> void forEachRow(Tables tables, const Problem &problem, Visit visit) {
  for (const fagen_table *table : tables)
    for (uint32_t mask : masksOf(*table, problem)) {
      const RowRange range = rowsOf(*table, keyWith(problem, mask));
      for (uint32_t i = range.begin; i < range.end; ++i)
        visit(*table, rowAt(*table, i));
    }
}

/// Why a row cannot compute a problem on a device.
enum class Misfit { None, Target, Code, Shared, Lse, Rows, Grid, Turns, Map, Alignment };
Misfit misfitOf(const fagen_row &row, const Problem &problem, const fagen_device &device);

/// How far a row's target is from the device: 0 exact, then lower targets by distance, then higher ones whose text runs
/// here.
uint32_t targetDistance(const fagen_row &row, const fagen_device &device);

/// Whether a tile's rows are those of all query heads of a K/V head.
bool packsHeads(const fagen_row &row);

/// Rows that a row's tiles cut up: of a head, or of all heads that share a K/V head; and how many such heads there are.
int64_t tiledRowsOf(const fagen_row &row, const Problem &problem);
int32_t tiledHeadsOf(const fagen_row &row, const Problem &problem);

/// CTAs of a cluster, 1 where there are none; and tiles of so many rows, whole clusters.
uint32_t clusterOf(const fagen_launch &launch);
uint32_t tilesOfRows(const fagen_row &row, uint32_t rows);

/// Tiles of query rows of all heads and batches, also beyond what a grid may have.
__int128 tilesOf(const fagen_row &row, const Problem &problem);

/// CTAs of a row's launches of tiles whose keys are not split, likewise.
__int128 gridOf(const fagen_row &row, const Problem &problem, const fagen_device &device);

/// Key tiles that each CTA of a persistent grid computes where all have as many, at most; 0 for other grids.
__int128 keyTilesOfCta(const fagen_row &row, const Problem &problem, const fagen_device &device);

/// What that may be. Positions in rings count key tiles in 32 bits; a CTA that draws its tiles may have up to seven
/// times its share.
constexpr int64_t kMaxKeyTilesOfCta = int64_t(1) << 28;

/// How many CTAs share the keys of a tile: 1 where the row says nothing of splits.
uint32_t splitsOf(const fagen_row &row, const Problem &problem, const fagen_device &device);

/// The most shared memory that a launch of the row asks for.
uint32_t sharedBytesOf(const fagen_row &row);

/// How dispatch came to a row; the earlier, the better.
enum class Pick { None, Name, Claim, Select, Fitting, Fallback };
struct Picked {
  Pick pick = Pick::None;
  const fagen_table *table = nullptr;
  const fagen_row *row = nullptr;
  const fagen_select *line = nullptr; ///< that chose it, for Pick::Claim too
};

/// Whether a table says what problems it was made for, and whether this is one.
bool hasClaim(const fagen_table &table);
bool claims(const fagen_table &table, const Variables &variables);

Picked pickRow(Tables tables, const Problem &problem, const fagen_device &device);

/// ABI_MISMATCH or INVALID for a table that this library must not read.
fagen_status checkTables(const fagen_table *const *tables, size_t count);

/// The binary of a row that a device can load; PTX only when there is no cubin; null when there is neither.
const fagen_binary *binaryFor(const fagen_code &code, uint32_t sm);

} // namespace fagen
