// fagen: fagen_query_program and fagen_run_program.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bind.h"

#include "../dispatch.h"
#include "../error.h"
#include "../launch.h"
#include "../maps.h"
#include "../state.h"
#include "suggest.h"

#include <climits>

using namespace fagen;

namespace {

uint32_t firstProgram(const fagen_table &table) {
  uint32_t first = table.row_count;
  while (first != 0 && isProgram(rowAt(table, first - 1)))
    --first;
  return first;
}

/// Calls `visit` with each program's row of the tables. They stand after all others.
template <typename Visit> void forEachProgram(Tables tables, Visit visit) {
  for (const fagen_table *table : tables)
    for (uint32_t i = firstProgram(*table); i < table->row_count; ++i)
      visit(*table, rowAt(*table, i));
}

struct Found {
  const fagen_table *table = nullptr;
  const fagen_row *row = nullptr;   ///< of the nearest target that has code for the device
  const fagen_row *other = nullptr; ///< one of this name that the device does not run
};

Found findProgram(Tables tables, const char *name, const fagen_device &device) {
  Found found;
  uint32_t nearest = UINT_MAX;
  forEachProgram(tables, [&](const fagen_table &table, const fagen_row &row) {
    if (strcmp(row.variant, name) != 0)
      return;
    found.other = &row;
    const uint32_t distance = targetDistance(row, device);
    const bool hasCode = row.code->source || binaryFor(*row.code, device.sm);
    if (distance >= nearest || !hasCode || sharedBytesOf(row) > device.sharedPerBlock)
      return;
    nearest = distance;
    found.table = &table;
    found.row = &row;
  });
  return found;
}

[[gnu::cold]] fagen_status failUnfound(Tables tables, const char *name, const fagen_row *other,
                                       const fagen_device &device) {
  if (other && sharedBytesOf(*other) > device.sharedPerBlock)
    return fail(FAGEN_UNSUPPORTED, "program %s needs %u B of shared memory; the device has %u B", name,
                sharedBytesOf(*other), device.sharedPerBlock);
  if (other) {
    char buffer[256];
    Text targets(buffer, sizeof(buffer));
    forEachProgram(tables, [&](const fagen_table &, const fagen_row &row) {
      if (strcmp(row.variant, name) == 0)
        targets.add("%s%s", targets.length() ? ", " : "", row.target);
    });
    return fail(FAGEN_UNSUPPORTED, "program %s has no code for compute capability %u.%u; it is for %s", name,
                device.sm / 10, device.sm % 10, buffer);
  }
  Suggestion names(name);
  forEachProgram(tables, [&](const fagen_table &, const fagen_row &row) { names.add(row.variant); });
  return fail(FAGEN_INVALID, "no program is named '%s'%s", name, names.text());
}

fagen_status checkTotal(const fagen_row &row, const BoundCall &bound, uint32_t &first) {
  for (uint32_t i = row.launch_count; i-- != 0;)
    if (fagen_status status = countCtas(bound, row, i, first))
      return status;
  return FAGEN_OK;
}

fagen_status launchAll(const PreparedRow &prepared, const BoundCall &bound, const fagen_call &call, CuStream stream,
                       const fagen_device &device) {
  const Driver &d = *driver();
  if (fagen_status status = checkCurrent(d, device))
    return status;
  const fagen_row &row = *prepared.row;
  alignas(64) unsigned char argument[FAGEN_MAX_ARGUMENT_BYTES];
  fagen_status status = packArgument(
      bound, argument, [&](const device::TensorMapDescription &map, const char *name, unsigned char *place) {
        return encodeMap(d, map, name, *reinterpret_cast<device::TensorMap *>(place));
      });
  void *arguments[] = {argument};
  for (uint32_t i = 0; i < row.launch_count && !status; ++i) {
    uint32_t ctas = 0;
    if ((status = countCtas(bound, row, i, ctas)) || ctas == 0)
      continue;
    const bool mayBeginEarly = (call.flags & FAGEN_FLAG_PDL) && (row.dependent_launches >> i & 1);
    if (CuResult result = enqueue(d, prepared.functions[i], row.launches[i], ctas, stream, arguments, mayBeginEarly))
      status = failCuda(result, row.launches[i].symbol);
  }
  return status;
}

} // namespace

fagen_status fagen_query_program(const fagen_table *const *tables, size_t table_count, const fagen_call *call,
                                 const fagen_device *device, fagen_choice *choice) {
  fagen_status status = checkTables(tables, table_count);
  status = status ? status : checkStruct(call, "fagen_call");
  status = status ? status : checkStruct(choice, "fagen_choice");
  if (status)
    return status;
  if (!device || !call->program)
    return fail(FAGEN_INVALID, "%s is NULL", device ? "fagen_call.program" : "device");
  const Tables span(tables, table_count);
  const Found found = findProgram(span, call->program, *device);
  if (!found.row)
    return failUnfound(span, call->program, found.other, *device);
  BoundCall bound;
  uint32_t ctas = 0;
  status = bindCall(*found.row, *call, device->smCount, true, bound);
  status = status ? status : checkMaps(bound);
  status = status ? status : checkTotal(*found.row, bound, ctas);
  if (status)
    return status;
  choice->table = found.table;
  choice->row = found.row;
  choice->device = device;
  choice->workspace_bytes = bound.workspaceBytes;
  choice->workspace_alignment = bound.workspaceBytes ? kProgramWorkspaceAlignment : 0;
  if (choice->struct_size >= sizeof(fagen_choice))
    choice->scratch_bytes = bound.workspaceBytes - bound.zeroedBytes;
  ChoiceState state = {};
  state.ctas = ctas;
  state.params.splits = 1;
  storeState(state, *choice);
  return FAGEN_OK;
}

fagen_status fagen_run_program(const fagen_choice *choice, const fagen_call *call, void *workspace,
                               size_t workspace_bytes, struct CUstream_st *stream) {
  fagen_status status = checkStruct(choice, "fagen_choice");
  status = status ? status : checkStruct(call, "fagen_call");
  if (status)
    return status;
  if (!choice->row)
    return fail(FAGEN_INVALID, "the choice was not filled by fagen_query_program");
  const fagen_row &row = *choice->row;
  if (!isProgram(row))
    return fail(FAGEN_INVALID, "the choice is of %s, which is attention; fagen_run runs it", row.variant);
  if (call->program && strcmp(call->program, row.variant) != 0)
    return fail(FAGEN_INVALID, "the choice is of program %s, and the call of '%s'", row.variant, call->program);
  BoundCall bound;
  status = bindCall(row, *call, choice->device->smCount, false, bound);
  status = status ? status : checkAddresses(bound);
  status = status ? status
                  : checkWorkspace(row, bound.workspaceBytes, kProgramWorkspaceAlignment, workspace, workspace_bytes);
  const PreparedRow *prepared = nullptr;
  status = status ? status : findPrepared(*choice, prepared);
  if (status)
    return status;
  bound.workspace = workspace;
  status = checkMaps(bound);
  return status ? status : launchAll(*prepared, bound, *call, stream, *choice->device);
}
