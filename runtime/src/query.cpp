// fagen: fagen_query, fagen_choice_get_info and fagen_table_check.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dispatch.h"
#include "error.h"
#include "forms/forms.h"
#include "programs/recipe.h"
#include "state.h"
#include "words.h"

#include <algorithm>
#include <bit>

using namespace fagen;

namespace {

/// Whether a launch leaves something in the workspace's last part for those that follow.
bool isClassified(const fagen_row &row) {
  return std::any_of(row.launches, row.launches + row.launch_count,
                     [](const fagen_launch &launch) { return launch.grid == FAGEN_GRID_KEY_TILES; });
}

/// Lays the workspace's parts one after the other, and tells how far the last reaches. UNSUPPORTED when a size cannot
/// be computed or exceeds 2^62 bytes.
fagen_status layWorkspace(const fagen_row &row, const Problem &problem, const fagen_device &device,
                          fagen_choice &choice, uint64_t &last) {
  constexpr int64_t kMaxBytes = int64_t(1) << 62;
  Variables variables = variablesWith(problem, row.mask, device.smCount);
  variables.values[FAGEN_VAR_SPLITS] = splitsOf(row, problem, device);
  uint64_t end = 0, zeroed = 0;
  choice.workspace_alignment = row.workspace_count ? 1 : 0;
  for (uint32_t i = 0; i < row.workspace_count; ++i) {
    const fagen_workspace &part = row.workspace[i];
    std::optional<int64_t> bytes = evaluate(part.bytes, part.bytes_size, variables);
    if (!bytes || *bytes < 0 || *bytes > kMaxBytes)
      return fail(FAGEN_UNSUPPORTED, "%s: the size of workspace '%s' cannot be computed for this problem", row.variant,
                  part.name);
    const uint64_t before = end;
    end = (end + part.alignment - 1) / part.alignment * part.alignment + uint64_t(*bytes);
    if (end > uint64_t(kMaxBytes))
      return fail(FAGEN_UNSUPPORTED, "%s: the workspace exceeds 2^62 bytes", row.variant);
    choice.workspace_alignment = std::max(choice.workspace_alignment, part.alignment);
    last = end - before;
    if (i < row.workspace_count - row.scratch_parts)
      zeroed = end;
  }
  choice.workspace_bytes = end;
  if (choice.struct_size >= sizeof(fagen_choice)) // an older caller zeroes all
    choice.scratch_bytes = end - zeroed;
  return FAGEN_OK;
}

constexpr uint32_t kMaxTile = 65536; // rows or keys
constexpr uint32_t kMaxCluster = 8;  // every GPU with clusters takes so many

/// What a launch's grid may be. Only the first one has splits, and tells the others how many; all that have tiles pack
/// heads, or none does.
bool isGrid(const fagen_row &row, uint32_t launch) {
  const fagen_launch &part = row.launches[launch];
  switch (part.grid) {
  case FAGEN_GRID_TILES:
  case FAGEN_GRID_PACKED_TILES:
  case FAGEN_GRID_PERSISTENT:
    return launch == 0 || part.grid == row.launches[0].grid;
  case FAGEN_GRID_ROWS:
  case FAGEN_GRID_KEY_TILES:
    return launch != 0;
  case FAGEN_GRID_CLUSTERS:
    return launch == 0 && part.reserved >= 2 && part.reserved <= kMaxCluster;
  case FAGEN_GRID_SPLITS:
  case FAGEN_GRID_PACKED_SPLITS:
    return launch == 0 && (part.reserved <= FAGEN_MAX_SPLITS || part.reserved == FAGEN_SPLITS_OF_SHARED);
  case FAGEN_GRID_SPLIT_KEYS:
  case FAGEN_GRID_PACKED_SPLIT_KEYS:
    return launch == 0 && part.reserved != 0;
  }
  return false;
}

/// Whether the copy engine can move the box: at most 256 elements a side, rows of whole 16 bytes, a swizzled one
/// filled; and no more panels than the tensor has.
bool isMap(const fagen_row &row, const fagen_map &map) {
  const uint32_t rowBytes = 2 * map.box_columns;
  const uint32_t columns = map.tensor == FAGEN_MAP_Q || map.tensor == FAGEN_MAP_K ? row.head_dim_qk : row.head_dim_v;
  const bool isSwizzle = map.swizzle == 128 || map.swizzle == 64 || map.swizzle == 32;
  return map.tensor <= FAGEN_MAP_O && map.box_columns >= 1 && map.box_columns <= 256 && map.box_rows >= 1 &&
         map.box_rows <= 256 && rowBytes % 16 == 0 && (isSwizzle ? rowBytes == map.swizzle : map.swizzle == 0) &&
         (map.box_panels == 0 || (columns % map.box_columns == 0 && map.box_panels <= columns / map.box_columns));
}

/// Whether each number has the bits that fagen_row_key gives it.
bool fitsItsKey(const fagen_row &row) {
  const struct {
    uint32_t number;
    int bits;
  } places[] = {{row.pass, 2},     {row.dtype, 4}, {row.mask, 6},  {row.head_dim_qk, 12}, {row.head_dim_v, 12},
                {row.dispatch, 2}, {row.sm, 10},   {row.exact, 2}, {row.order, 14}};
  return std::all_of(std::begin(places), std::end(places), [](auto place) { return place.number >> place.bits == 0; });
}

const char *checkSharedTiles(const fagen_table &table, const fagen_row &row) {
  if (row.launches[0].reserved != FAGEN_SPLITS_OF_SHARED)
    return nullptr;
  if (table.row_size < offsetof(fagen_row, recipe))
    return "has no room for shared_tiles, which its splits ask for";
  const fagen_form *const form = row.mask < FAGEN_MASK_FORM_0 + formCount(table) ? formOf(table, row.mask) : nullptr;
  return checkProgram(row.shared_tiles, row.shared_tiles_size,
                      FAGEN_VAR_FORM_0 + uint64_t(form ? form->param_count : 0));
}

/// What rows of all kinds must be, or null.
const char *checkHead(const fagen_table &table, const fagen_row &row, uint32_t i) {
  if (!row.variant || !row.target || !row.code)
    return "variant, target or code is NULL";
  if (!row.code->source && row.code->binary_count == 0)
    return "has neither source nor a binary";
  if (fagen_row_key(&row) != table.keys[i])
    return "its key is not fagen_row_key of it";
  if (!fitsItsKey(row))
    return "a number of its key is larger than its place there";
  if (i && table.keys[i - 1] >= table.keys[i])
    return "keys do not ascend";
  if (row.launch_count == 0 || row.launch_count > FAGEN_MAX_LAUNCHES)
    return "launch_count is not 1 to 4";
  if (row.alignment == 0 || (row.alignment & (row.alignment - 1)) || (row.map_count && row.alignment < 16))
    return "alignment is not a power of two, or below the 16 that tensor maps need";
  for (uint32_t launch = 0; launch < row.launch_count; ++launch)
    if (!row.launches[launch].symbol || !(isProgram(row) || isGrid(row, launch)) || row.launches[launch].threads == 0 ||
        row.launches[launch].threads > 1024)
      return "a launch has no symbol, an unknown grid, or not 1 to 1024 threads";
  return row.dependent_launches >> row.launch_count ? "a launch that it does not have is dependent" : nullptr;
}

fagen_status checkRow(const fagen_table &table, uint32_t i) {
  const fagen_row &row = rowAt(table, i);
  auto invalid = [&](const char *what) {
    return fail(FAGEN_INVALID, "table %s, row %u (%s): %s", table.kernel, i, row.variant ? row.variant : "?", what);
  };
  if (const char *problem = checkHead(table, row, i))
    return invalid(problem);
  if (isProgram(row)) {
    const char *const problem = checkRecipe(table, row);
    return problem ? invalid(problem) : FAGEN_OK;
  }
  if (row.schedule >= table.schedule_count)
    return invalid("schedule is out of range");
  if (row.mask >= FAGEN_MASK_FORM_0 + formCount(table))
    return invalid("its mask is neither none nor causal nor a form of the table");
  if (row.tile_rows == 0 || std::max(row.tile_rows, row.tile_keys) > kMaxTile)
    return invalid("tile_rows is not 1 to 65536, or tile_keys is more");
  if (isClassified(row) && row.scratch_parts == 0)
    return invalid("has a launch of key tiles and no scratch for it");
  if (row.scratch_parts > row.workspace_count)
    return invalid("has more scratch parts than parts of the workspace");
  for (uint32_t part = 0; part < row.workspace_count; ++part)
    if (const char *problem = checkProgram(row.workspace[part].bytes, row.workspace[part].bytes_size))
      return invalid(problem);
    else if (!std::has_single_bit(row.workspace[part].alignment))
      return invalid("a workspace alignment is not a power of two");
  if (const char *problem = checkSharedTiles(table, row))
    return invalid(problem);
  uint32_t mapped = 0; // a bit for each tensor
  for (uint32_t i = 0; i < row.map_count; ++i) {
    const fagen_map &map = row.maps[i];
    if (!isMap(row, map) || (mapped >> map.tensor & 1))
      return invalid("a map is of no tensor, of one twice, or its box is none");
    mapped |= 1u << map.tensor;
  }
  return FAGEN_OK;
}

fagen_status checkForms(const fagen_table &table) {
  const uint32_t count = formCount(table);
  if (count > FAGEN_MAX_FORMS)
    return fail(FAGEN_INVALID, "table %s has %u forms; at most %u are possible", table.kernel, count, FAGEN_MAX_FORMS);
  if (count && table.form_size < sizeof(fagen_form))
    return fail(FAGEN_INVALID, "table %s has forms of %u bytes; this library needs %zu", table.kernel, table.form_size,
                sizeof(fagen_form));
  for (uint32_t i = 0; i < count; ++i)
    if (const char *problem = checkForm(table, i)) {
      const char *text = formAt(table, i).text;
      return fail(FAGEN_INVALID, "table %s, form %u (%s): %s", table.kernel, i, text ? text : "?", problem);
    }
  return FAGEN_OK;
}

} // namespace

fagen_status fagen_query(const fagen_table *const *tables, size_t table_count, const fagen_problem *problem,
                         const fagen_device *device, fagen_choice *choice) {
  fagen_status status = checkTables(tables, table_count);
  status = status ? status : checkStruct(choice, "fagen_choice");
  if (status)
    return status;
  if (!device)
    return fail(FAGEN_INVALID, "device is NULL");
  Problem known;
  if ((status = readProblem(problem, known)))
    return status;
  Tables span(tables, table_count);
  if (known.form.name)
    if ((status = readForm(span, known)))
      return status;
  Picked picked = pickRow(span, known, *device);
  if (!picked.row)
    return failUnfit(span, known, *device);
  uint64_t last = 0;
  if ((status = layWorkspace(*picked.row, known, *device, *choice, last)))
    return status;
  choice->table = picked.table;
  choice->row = picked.row;
  choice->device = device;
  known.params.splits = int(splitsOf(*picked.row, known, *device));
  storeState({known.params, uint32_t(gridOf(*picked.row, known, *device)), known.overlapsLaunches,
              isClassified(*picked.row) ? last : 0},
             *choice);
  if (const fagen_form *form = formOf(*picked.table, picked.row->mask))
    packForm(*form, known, formBytes(*choice));
  return FAGEN_OK;
}

fagen_status fagen_choice_get_info(const fagen_choice *choice, fagen_choice_info *info) {
  fagen_status status = checkStruct(choice, "fagen_choice");
  status = status ? status : checkStruct(info, "fagen_choice_info");
  if (status)
    return status;
  if (!choice->row)
    return fail(FAGEN_INVALID, "the choice was not filled by fagen_query");
  const fagen_row &row = *choice->row;
  const PreparedRow *prepared = choice->device->prepared.find(&row);
  info->variant = row.variant;
  info->target = row.target;
  info->symbol = row.launches[0].symbol;
  info->origin = prepared ? prepared->origin : nullptr;
  info->grid = gridOf(row.launches[0], loadState(*choice));
  info->threads = row.launches[0].threads;
  info->shared_bytes = row.launches[0].shared_bytes;
  info->registers = prepared ? prepared->registers : -1;
  info->local_bytes = prepared ? prepared->localBytes : -1;
  return FAGEN_OK;
}

fagen_status fagen_table_check(const fagen_table *table) {
  if (fagen_status status = checkTables(&table, 1))
    return status;
  if (fagen_status status = checkForms(*table))
    return status;
  for (uint32_t i = 0; i < table->row_count; ++i)
    if (fagen_status status = checkRow(*table, i))
      return status;
  // Keys ascend: where the first row is a program's, all are.
  if (table->row_count && !isProgram(rowAt(*table, 0)) &&
      (table->select_count == 0 || table->select[table->select_count - 1].condition_size != 0))
    return fail(FAGEN_INVALID, "table %s: select does not end in an otherwise line", table->kernel);
  if (hasClaim(*table))
    if (const char *problem = checkProgram(table->claim, table->claim_size))
      return fail(FAGEN_INVALID, "table %s, claim: %s", table->kernel, problem);
  for (uint32_t i = 0; i < table->select_count; ++i) {
    const fagen_select &line = table->select[i];
    const char *problem = line.condition_size ? checkProgram(line.condition, line.condition_size) : nullptr;
    problem = problem || line.schedule < table->schedule_count ? problem : "names a schedule that is out of range";
    if (problem)
      return fail(FAGEN_INVALID, "table %s, select line %u (%s): %s", table->kernel, i, line.text, problem);
  }
  return FAGEN_OK;
}
