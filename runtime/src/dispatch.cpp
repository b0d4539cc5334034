// fagen: which row of which table computes a problem on a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table's rows are sorted by key; the high bits of a key name the problem, so one binary search a table gives the few
// rows of that problem, and in them first those that dispatch may pick freely, then fallbacks, then those reached by
// name only. The best of a table is the first of
//   1. the rows that select reaches: those of the nearest target, and among them the earliest true line's,
//   2. any row that fits, nearest target first, then in spec order (select named only rows that alignment excludes),
//   3. a fallback that fits, likewise;
// and the best of all tables is one that claims the problem with a row of stage 1, else the one with the smallest
// stage, then the nearest target, then the earliest table. A form that a table has several times, with other values
// bound, has rows of several keys; each key is asked like a table of its own, those with more bound values first.
#include "dispatch.h"

#include "error.h"
#include "forms/args.h"
#include "maps.h"

#include <algorithm>
#include <climits>
#include <cstring>

namespace fagen {
namespace {

constexpr uint32_t kDispatchShift = 26; // of fagen_row_key: how a row is dispatched
constexpr uint32_t kNoTarget = UINT_MAX;
constexpr uint32_t kHigherTarget = 1000; // distance of targets above the device: after all lower ones

/// The first row whose key is not below `key`. Without branches on keys: queries differ, and guesses would be wrong.
uint32_t lowerBound(const fagen_table &table, uint64_t key) {
  const uint64_t *base = table.keys;
  uint32_t size = table.row_count;
  while (size > 1) {
    uint32_t half = size / 2;
    base = base[half - 1] < key ? base + half : base;
    size -= half;
  }
  return uint32_t(base - table.keys) + (size == 1 && *base < key);
}

/// A row found, and how far its target is.
struct Candidate {
  const fagen_row *row = nullptr;
  uint32_t distance = kNoTarget;
};

bool fits(const fagen_row &row, const Problem &problem, const fagen_device &device) {
  return problem.commonAlignment >= row.alignment && misfitOf(row, problem, device) == Misfit::None;
}

/// The first fitting row of the nearest target that is nearer than `bound`, of one schedule unless it is negative.
Candidate nearestFit(const fagen_table &table, RowRange range, int64_t schedule, uint32_t bound, const Problem &problem,
                     const fagen_device &device) {
  Candidate best{nullptr, bound};
  for (uint32_t i = range.begin; i < range.end; ++i) {
    const fagen_row &row = rowAt(table, i);
    if (schedule >= 0 && row.schedule != schedule)
      continue;
    uint32_t distance = targetDistance(row, device);
    if (distance < best.distance && fits(row, problem, device))
      best = {&row, distance};
  }
  return best;
}

/// Stage 1.
Candidate pickBySelect(const fagen_table &table, RowRange range, const Problem &problem, const Variables &variables,
                       const fagen_device &device, const fagen_select *&line) {
  Candidate best;
  for (uint32_t i = 0; i < table.select_count && best.distance != 0; ++i) {
    const fagen_select &current = table.select[i];
    if (current.condition_size && evaluate(current.condition, current.condition_size, variables).value_or(0) == 0)
      continue;
    Candidate candidate = nearestFit(table, range, current.schedule, best.distance, problem, device);
    if (candidate.row) {
      best = candidate;
      line = &current;
    }
  }
  return best;
}

/// The part of a problem's rows that is dispatched in one way, from `begin` on.
RowRange dispatchedFrom(const fagen_table &table, uint32_t begin, uint64_t problemKey, uint64_t dispatch) {
  uint64_t end = problemKey | ((dispatch + 1) << kDispatchShift);
  RowRange range{begin, begin};
  while (range.end < table.row_count && table.keys[range.end] < end)
    ++range.end;
  return range;
}

/// The best row of one table for one of the problem's keys, and its distance.
Picked pickInTable(const fagen_table &table, uint64_t key, const Problem &problem, const Variables &variables,
                   const fagen_device &device, uint32_t &distance) {
  Picked picked;
  picked.table = &table;
  auto found = [&](Pick pick, Candidate candidate) {
    picked.pick = candidate.row ? pick : Pick::None;
    picked.row = candidate.row;
    distance = candidate.distance;
    return candidate.row != nullptr;
  };
  RowRange free = dispatchedFrom(table, lowerBound(table, key), key, FAGEN_ROW_DISPATCHED);
  if (found(Pick::Select, pickBySelect(table, free, problem, variables, device, picked.line))) {
    if (claims(table, variables))
      picked.pick = Pick::Claim;
    return picked;
  }
  if (found(Pick::Fitting, nearestFit(table, free, -1, kNoTarget, problem, device)))
    return picked;
  RowRange fallbacks = dispatchedFrom(table, free.end, key, FAGEN_ROW_FALLBACK);
  found(Pick::Fallback, nearestFit(table, fallbacks, -1, kNoTarget, problem, device));
  return picked;
}

Picked pickByName(Tables tables, const Problem &problem, const fagen_device &device) {
  Picked best;
  uint32_t nearest = kNoTarget;
  forEachRow(tables, problem, [&](const fagen_table &table, const fagen_row &row) {
    uint32_t distance = targetDistance(row, device);
    if (distance < nearest && strcmp(row.variant, problem.variant) == 0 && fits(row, problem, device)) {
      best = {Pick::Name, &table, &row, nullptr};
      nearest = distance;
    }
  });
  return best;
}

} // namespace

bool hasClaim(const fagen_table &table) {
  return table.struct_size >= offsetof(fagen_table, forms) && table.claim_size != 0;
}

bool claims(const fagen_table &table, const Variables &variables) {
  return hasClaim(table) && evaluate(table.claim, table.claim_size, variables).value_or(0) != 0;
}

RowRange rowsOf(const fagen_table &table, uint64_t problemKey) {
  return {lowerBound(table, problemKey), lowerBound(table, problemKey + (uint64_t(1) << FAGEN_KEY_PROBLEM_SHIFT))};
}

uint32_t targetDistance(const fagen_row &row, const fagen_device &device) {
  if (device.sm < row.first_sm || (row.last_sm != 0 && device.sm > row.last_sm))
    return kNoTarget;
  return row.sm <= device.sm ? device.sm - row.sm : kHigherTarget + row.sm - device.sm;
}

bool packsHeads(const fagen_row &row) {
  switch (row.launches[0].grid) {
  case FAGEN_GRID_PACKED_TILES:
  case FAGEN_GRID_PACKED_SPLITS:
  case FAGEN_GRID_PACKED_SPLIT_KEYS:
    return true;
  }
  return false;
}

int64_t tiledRowsOf(const fagen_row &row, const Problem &problem) {
  return int64_t(problem.params.seq_q) * (packsHeads(row) ? problem.params.heads_per_kv : 1);
}

int32_t tiledHeadsOf(const fagen_row &row, const Problem &problem) {
  return packsHeads(row) ? problem.params.kv_heads : problem.params.heads;
}

uint32_t clusterOf(const fagen_launch &launch) { return launch.grid == FAGEN_GRID_CLUSTERS ? launch.reserved : 1; }

uint32_t tilesOfRows(const fagen_row &row, uint32_t rows) {
  const uint32_t cluster = clusterOf(row.launches[0]), tiles = (rows + row.tile_rows - 1) / row.tile_rows;
  return (tiles + cluster - 1) / cluster * cluster;
}

__int128 tilesOf(const fagen_row &row, const Problem &problem) {
  const device::AttentionParams &p = problem.params;
  // In 32 bits: misfitOf refuses more rows.
  return __int128(tilesOfRows(row, uint32_t(tiledRowsOf(row, problem)))) * tiledHeadsOf(row, problem) * p.batch;
}

// How many CTAs at a time. A few query rows wait for memory, and one CTA an SM asks for enough of it; tiles of more
// rows multiply, and where two of them fit an SM each does its softmax under the other's products.
static uint64_t placesOf(const fagen_row &row, const fagen_device &device) {
  constexpr uint32_t kManyRows = 64, kReserved = 1024; // bytes of shared memory that a CTA takes besides its own
  const fagen_launch &launch = row.launches[0];
  bool fitTwice = launch.threads <= 128 && 2 * uint64_t(launch.shared_bytes) + kReserved <= device.sharedPerBlock;
  return uint64_t(device.smCount) * (row.tile_rows >= kManyRows && fitTwice ? 2 : 1);
}

// What CTAs cost in sixteenths of a key tile's time, where places take one after the other: the tiles of a split, a
// tile's time to begin and end, and for each split its part in the merge, one sixteenth for 16 rows.
static uint64_t costOfSplits(uint64_t ctas, uint64_t splits, uint64_t keyTiles, uint64_t places, uint32_t tileRows) {
  uint64_t turns = (ctas * splits + places - 1) / places;
  return turns * ((keyTiles + splits - 1) / splits + 1) * 16 + splits * ((tileRows + 15) / 16);
}

// The cheapest.
static uint32_t fillingSplits(uint64_t ctas, uint64_t keyTiles, uint64_t places, uint32_t tileRows) {
  uint64_t best = 1, cost = UINT64_MAX;
  for (uint64_t splits = 1; splits <= std::max<uint64_t>(1, std::min<uint64_t>(keyTiles, FAGEN_MAX_SPLITS)); ++splits)
    if (uint64_t now = costOfSplits(ctas, splits, keyTiles, places, tileRows); now < cost) {
      best = splits;
      cost = now;
    }
  return uint32_t(best);
}

static uint64_t runsOf(const Problem &problem, uint32_t keys) {
  return (uint64_t(problem.params.seq_kv) + keys - 1) / keys;
}

// Key tiles that splits share, of the tile of rows that has the most. Of many tiles the first, the last and some
// between are asked.
static uint64_t sharedTilesOf(const fagen_row &row, const Problem &problem) {
  constexpr uint64_t kAsked = 16;
  const uint64_t all = runsOf(problem, row.tile_keys);
  FormValues values(problem.variables);
  if (problem.form.of)
    values.addAll(*problem.form.of, problem);
  if (values.unknownParam({row.shared_tiles, row.shared_tiles_size}))
    return all;
  const uint64_t tiles = tilesOfRows(row, uint32_t(tiledRowsOf(row, problem))), asked = std::min(tiles, kAsked);
  uint64_t most = 0;
  for (uint64_t i = 0; i < asked; ++i) {
    values.values[FAGEN_VAR_ROW] = int64_t(asked == 1 ? 0 : i * (tiles - 1) / (asked - 1)) * row.tile_rows;
    const std::optional<int64_t> seen = evaluateWith(row.shared_tiles, row.shared_tiles_size, values.values);
    most = std::max(most, seen ? uint64_t(std::clamp<int64_t>(*seen, 0, int64_t(all))) : all);
  }
  return most;
}

// A grid that keeps the GPU busy for several turns is not split.
static uint32_t splitsThatFill(const fagen_row &row, const Problem &problem, const fagen_device &device) {
  constexpr uint64_t kBusyTurns = 8;
  const __int128 ctas = tilesOf(row, problem);
  const uint64_t places = placesOf(row, device);
  if (ctas == 0 || ctas > __int128(kBusyTurns) * places)
    return 1;
  const bool sharesSome = row.launches[0].reserved == FAGEN_SPLITS_OF_SHARED;
  const uint64_t shared = sharesSome ? sharedTilesOf(row, problem) : runsOf(problem, row.tile_keys);
  return fillingSplits(uint64_t(ctas), shared, places, row.tile_rows);
}

uint32_t splitsOf(const fagen_row &row, const Problem &problem, const fagen_device &device) {
  const fagen_launch &launch = row.launches[0];
  switch (launch.grid) {
  case FAGEN_GRID_SPLITS:
  case FAGEN_GRID_PACKED_SPLITS:
    if (launch.reserved && launch.reserved != FAGEN_SPLITS_OF_SHARED)
      return launch.reserved;
    return row.tile_keys ? splitsThatFill(row, problem, device) : 1;
  case FAGEN_GRID_SPLIT_KEYS:
  case FAGEN_GRID_PACKED_SPLIT_KEYS:
    return launch.reserved ? uint32_t(std::max<uint64_t>(runsOf(problem, launch.reserved), 1)) : 1;
  }
  return 1;
}

// The most CTAs that a launch has.
static __int128 largestGrid(const fagen_row &row, const Problem &problem, const fagen_device &device) {
  const device::AttentionParams &p = problem.params;
  __int128 rows = __int128(p.batch) * p.heads * p.seq_q; // of a launch of rows, with at least one a CTA
  __int128 most = tilesOf(row, problem) * splitsOf(row, problem, device);
  for (uint32_t i = 0; i < row.launch_count; ++i)
    if (row.launches[i].grid == FAGEN_GRID_ROWS)
      most = std::max(most, rows);
    else if (row.launches[i].grid == FAGEN_GRID_KEY_TILES)
      most = std::max(most, gridOf(row, problem, device) * FAGEN_KEY_TILE_CTAS);
  return most;
}

__int128 gridOf(const fagen_row &row, const Problem &problem, const fagen_device &device) {
  const __int128 tiles = tilesOf(row, problem);
  switch (const fagen_launch &launch = row.launches[0]; launch.grid) {
  case FAGEN_GRID_PERSISTENT:
    return std::min<__int128>(tiles, device.smCount);
  case FAGEN_GRID_CLUSTERS: // at least one, on whatever GPU
    return std::min<__int128>(tiles, std::max(device.smCount / launch.reserved, 1u) * launch.reserved);
  }
  return tiles;
}

__int128 keyTilesOfCta(const fagen_row &row, const Problem &problem, const fagen_device &device) {
  const bool isPersistent =
      row.launches[0].grid == FAGEN_GRID_PERSISTENT || row.launches[0].grid == FAGEN_GRID_CLUSTERS;
  const __int128 tiles = tilesOf(row, problem), ctas = gridOf(row, problem, device);
  if (!isPersistent || row.tile_keys == 0 || ctas == 0)
    return 0;
  const int64_t keyTiles = (int64_t(problem.params.seq_kv) + row.tile_keys - 1) / row.tile_keys;
  return (tiles + ctas - 1) / ctas * keyTiles;
}

uint32_t sharedBytesOf(const fagen_row &row) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < row.launch_count; ++i)
    most = std::max(most, row.launches[i].shared_bytes);
  return most;
}

const fagen_binary *binaryFor(const fagen_code &code, uint32_t sm) {
  const fagen_binary *best = nullptr;
  for (uint64_t i = 0; i < code.binary_count; ++i) {
    const fagen_binary &binary = code.binaries[i];
    bool cubin = binary.kind == FAGEN_BINARY_CUBIN;
    // Machine code runs on its own major version from its minor version on; PTX on everything newer.
    bool fits = binary.exact ? binary.sm == sm : binary.sm <= sm && (!cubin || binary.sm / 10 == sm / 10);
    if (!fits)
      continue;
    bool better = !best || (cubin != (best->kind == FAGEN_BINARY_CUBIN) ? cubin : binary.sm > best->sm);
    if (better)
      best = &binary;
  }
  return best;
}

Misfit misfitOf(const fagen_row &row, const Problem &problem, const fagen_device &device) {
  if (targetDistance(row, device) == kNoTarget)
    return Misfit::Target;
  if (!row.code->source && !binaryFor(*row.code, device.sm))
    return Misfit::Code;
  if (sharedBytesOf(row) > device.sharedPerBlock)
    return Misfit::Shared;
  if (tiledRowsOf(row, problem) > kMaxCount)
    return Misfit::Rows;
  if (largestGrid(row, problem, device) > kMaxCount)
    return Misfit::Grid;
  if (keyTilesOfCta(row, problem, device) > kMaxKeyTilesOfCta)
    return Misfit::Turns;
  if (problem.lse && !row.lse)
    return Misfit::Lse;
  if (problem.commonAlignment < row.alignment)
    return Misfit::Alignment;
  return findRefusedMap(row, problem.params).reason ? Misfit::Map : Misfit::None;
}

Picked pickRow(Tables tables, const Problem &problem, const fagen_device &device) {
  if (problem.variant)
    return pickByName(tables, problem, device);
  Variables variables = variablesWith(problem, 0, device.smCount);
  Picked best;
  uint32_t nearest = kNoTarget;
  for (const fagen_table *table : tables)
    for (uint32_t mask : masksOf(*table, problem)) {
      uint32_t distance = kNoTarget;
      variables.values[FAGEN_VAR_MASK] = mask;
      Picked picked = pickInTable(*table, keyWith(problem, mask), problem, variables, device, distance);
      bool better = !best.row || picked.pick < best.pick || (picked.pick == best.pick && distance < nearest);
      if (picked.row && better) {
        best = picked;
        nearest = distance;
      }
    }
  return best;
}

fagen_status checkTables(const fagen_table *const *tables, size_t count) {
  if (!tables && count)
    return fail(FAGEN_INVALID, "tables is NULL");
  for (size_t i = 0; i < count; ++i) {
    const fagen_table *table = tables[i];
    if (fagen_status status = checkStruct(table, "fagen_table"))
      return status;
    if (table->row_size < kLeastSize<fagen_row>)
      return fail(FAGEN_INVALID, "table %s has rows of %u bytes; this library needs %u", table->kernel, table->row_size,
                  kLeastSize<fagen_row>);
    if (endsInField<fagen_row>(table->row_size) || table->row_size % alignof(fagen_row) != 0)
      return fail(FAGEN_INVALID,
                  "table %s has rows of %u bytes, which end within a field; those of this library have %zu",
                  table->kernel, table->row_size, sizeof(fagen_row));
  }
  return FAGEN_OK;
}

} // namespace fagen
