// fagen: which row of which table computes a problem on a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A table's rows are sorted by key; the high bits of a key name the problem, so one binary search a table gives the few
// rows of that problem, and in them first those that dispatch may pick freely, then fallbacks, then those reached by
// name only. Among them:
//   1. target by target, nearest to the device first: the schedule of the first true select line that has a row that
//      fits, in the first table that has one;
//   2. target by target: any row that fits, in spec order (select named only rows that alignment excludes);
//   3. a fallback, target by target.
#include "dispatch.h"

#include "error.h"

#include <algorithm>
#include <climits>
#include <cstring>

namespace fagen {
namespace {

constexpr uint32_t kDispatchShift = 26; // of fagen_row_key: how a row is dispatched
constexpr uint32_t kNoTarget = UINT_MAX;
constexpr uint32_t kHigherTarget = 1000; // distance of targets above the device: after all lower ones

uint32_t lowerBound(const fagen_table &table, uint64_t key) {
  return uint32_t(std::lower_bound(table.keys, table.keys + table.row_count, key) - table.keys);
}

/// The rows of a problem that are dispatched in one way.
RowRange dispatchRows(const fagen_table &table, uint64_t problemKey, uint64_t dispatch) {
  uint32_t begin = lowerBound(table, problemKey | (dispatch << kDispatchShift));
  uint64_t end = problemKey | ((dispatch + 1) << kDispatchShift);
  RowRange range{begin, begin};
  while (range.end < table.row_count && table.keys[range.end] < end)
    ++range.end;
  return range;
}

/// The smallest distance of any row's target that is more than `above` (kNoTarget: from the nearest on).
uint32_t nextTarget(Tables tables, const Problem &problem, const fagen_device &device, uint64_t dispatch,
                    uint32_t above) {
  uint32_t nearest = kNoTarget;
  for (const fagen_table *table : tables) {
    RowRange range = dispatchRows(*table, problem.key, dispatch);
    for (uint32_t i = range.begin; i < range.end; ++i) {
      uint32_t distance = targetDistance(rowAt(*table, i), device);
      if (distance < nearest && (above == kNoTarget || distance > above))
        nearest = distance;
    }
  }
  return nearest;
}

/// Calls visit(table, rows, distance) target by target, the nearest first, tables in order, until it returns a row.
template <typename Visit>
Picked eachTarget(Tables tables, const Problem &problem, const fagen_device &device, uint64_t dispatch, Visit visit) {
  uint32_t distance = nextTarget(tables, problem, device, dispatch, kNoTarget);
  while (distance != kNoTarget) {
    for (const fagen_table *table : tables)
      if (Picked picked = visit(*table, dispatchRows(*table, problem.key, dispatch), distance); picked.row)
        return picked;
    distance = nextTarget(tables, problem, device, dispatch, distance);
  }
  return {};
}

/// The first row that fits, of one target and, unless it is negative, of one schedule.
const fagen_row *firstFit(const fagen_table &table, RowRange range, uint32_t distance, int64_t schedule,
                          const Problem &problem, const fagen_device &device) {
  for (uint32_t i = range.begin; i < range.end; ++i) {
    const fagen_row &row = rowAt(table, i);
    if ((schedule < 0 || row.schedule == schedule) && targetDistance(row, device) == distance &&
        misfitOf(row, problem, device) == Misfit::None)
      return &row;
  }
  return nullptr;
}

Picked pickByName(Tables tables, const Problem &problem, const fagen_device &device) {
  Picked best;
  uint32_t nearest = kNoTarget;
  for (const fagen_table *table : tables) {
    RowRange range = rowsOf(*table, problem.key);
    for (uint32_t i = range.begin; i < range.end; ++i) {
      const fagen_row &row = rowAt(*table, i);
      uint32_t distance = targetDistance(row, device);
      if (distance < nearest && strcmp(row.variant, problem.variant) == 0 &&
          misfitOf(row, problem, device) == Misfit::None) {
        best = {Pick::Name, table, &row, nullptr};
        nearest = distance;
      }
    }
  }
  return best;
}

} // namespace

RowRange rowsOf(const fagen_table &table, uint64_t problemKey) {
  return {lowerBound(table, problemKey), lowerBound(table, problemKey + (uint64_t(1) << FAGEN_KEY_PROBLEM_SHIFT))};
}

uint32_t targetDistance(const fagen_row &row, const fagen_device &device) {
  if (device.sm < row.first_sm || (row.last_sm != 0 && device.sm > row.last_sm))
    return kNoTarget;
  return row.sm <= device.sm ? device.sm - row.sm : kHigherTarget + row.sm - device.sm;
}

__int128 gridOf(const fagen_row &row, const Problem &problem) {
  const device::AttentionParams &p = problem.params;
  int64_t tiles = (int64_t(p.seq_q) + row.tile_rows - 1) / row.tile_rows;
  return __int128(tiles) * p.heads * p.batch;
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
  if (gridOf(row, problem) > INT_MAX)
    return Misfit::Grid;
  if (problem.lse && !row.lse)
    return Misfit::Lse;
  return problem.commonAlignment < row.alignment ? Misfit::Alignment : Misfit::None;
}

Picked pickRow(Tables tables, const Problem &problem, const fagen_device &device) {
  if (problem.variant)
    return pickByName(tables, problem, device);

  Variables variables = problem.variables;
  variables.values[FAGEN_VAR_SMS] = device.smCount;
  auto bySelect = [&](const fagen_table &table, RowRange range, uint32_t distance) -> Picked {
    if (range.begin == range.end)
      return {};
    for (const fagen_select &line : std::span(table.select, table.select_count)) {
      if (line.condition_size && evaluate(line.condition, line.condition_size, variables).value_or(0) == 0)
        continue;
      if (const fagen_row *row = firstFit(table, range, distance, line.schedule, problem, device))
        return {Pick::Select, &table, row, &line};
    }
    return {};
  };
  if (Picked picked = eachTarget(tables, problem, device, FAGEN_ROW_DISPATCHED, bySelect); picked.row)
    return picked;

  for (auto [dispatch, pick] :
       {std::pair(FAGEN_ROW_DISPATCHED, Pick::Fitting), std::pair(FAGEN_ROW_FALLBACK, Pick::Fallback)}) {
    auto anyFit = [&, pick = pick](const fagen_table &table, RowRange range, uint32_t distance) -> Picked {
      const fagen_row *row = firstFit(table, range, distance, -1, problem, device);
      return {pick, &table, row, nullptr};
    };
    if (Picked picked = eachTarget(tables, problem, device, uint64_t(dispatch), anyFit); picked.row)
      return picked;
  }
  return {};
}

fagen_status checkTables(const fagen_table *const *tables, size_t count) {
  if (!tables && count)
    return fail(FAGEN_INVALID, "tables is NULL");
  for (size_t i = 0; i < count; ++i) {
    const fagen_table *table = tables[i];
    if (fagen_status status = checkStruct(table, "fagen_table"))
      return status;
    if (table->row_size < sizeof(fagen_row))
      return fail(FAGEN_INVALID, "table %s has rows of %u bytes; this library needs %zu", table->kernel,
                  table->row_size, sizeof(fagen_row));
  }
  return FAGEN_OK;
}

} // namespace fagen
