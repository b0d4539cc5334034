// fagen: fagen_run: checks the pointers and launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "arguments.h"
#include "device.h"
#include "error.h"
#include "launch.h"
#include "maps.h"
#include "programs/recipe.h"
#include "state.h"

using namespace fagen;

namespace {

fagen_status checkTensors(const fagen_row &row, const device::AttentionParams &params, const fagen_tensors &t) {
  if (!t.q || !t.o)
    return fail(FAGEN_INVALID, "%s is NULL", t.q ? "o" : "q");
  if (params.seq_kv != 0 && (!t.k || !t.v))
    return fail(FAGEN_INVALID, "%s is NULL and seq_kv is %d", t.k ? "v" : "k", params.seq_kv);
  if (t.lse && !row.lse)
    return fail(FAGEN_INVALID, "%s cannot write LSE; set FAGEN_FLAG_LSE in the problem", row.variant);
  const struct {
    const char *name;
    const void *pointer;
    uint32_t alignment;
  } tensors[] = {{"q", t.q, row.alignment},
                 {"k", t.k, row.alignment},
                 {"v", t.v, row.alignment},
                 {"o", t.o, row.alignment},
                 {"lse", t.lse, alignof(float)}};
  for (const auto &tensor : tensors)
    if (!aligned(tensor.pointer, tensor.alignment))
      return fail(FAGEN_MISALIGNED, "%s is %p; %s needs %u-byte alignment: say so in fagen_problem.alignment",
                  tensor.name, tensor.pointer, row.variant, tensor.alignment);
  if (t.struct_size >= sizeof(fagen_tensors) && t.arg_count && (!t.args || row.mask < FAGEN_MASK_FORM_0))
    return fail(FAGEN_INVALID,
                t.args ? "arg_count is %u, and the problem has no form" : "args is NULL and arg_count is %u",
                t.arg_count);
  if (t.struct_size >= sizeof(fagen_tensors) && t.reserved)
    return fail(FAGEN_INVALID, "fagen_tensors.reserved is %u; it must be 0", t.reserved);
  return FAGEN_OK;
}

/// What a launch has left there for others: who uses the workspace next may count on zeros.
fagen_status clear(const Driver &d, const fagen_choice &choice, const ChoiceState &state, void *workspace,
                   CuStream stream) {
  const CuPointer end = reinterpret_cast<CuPointer>(workspace) + choice.workspace_bytes;
  const CuResult status =
      state.cleared ? d.cuMemsetD8Async(end - state.cleared, 0, state.cleared, stream) : kCudaSuccess;
  return status ? failCuda(status, "zero the workspace") : FAGEN_OK;
}

fagen_status launch(const PreparedRow &prepared, LaunchArgument &argument, const ChoiceState &state, CuStream stream,
                    const fagen_device &device) {
  const Driver &d = *driver();
  if (fagen_status status = checkCurrent(d, device))
    return status;
  const fagen_row &row = *prepared.row;
  if (fagen_status status = encodeMaps(d, row, argument.params))
    return status;
  void *arguments[] = {&argument};
  fagen_status failed = FAGEN_OK;
  forEachLaunch(row, [&](uint32_t i) {
    const fagen_launch &launch = row.launches[i];
    const bool mayBeginEarly = state.overlapsLaunches && (row.dependent_launches >> i & 1) != 0;
    if (CuResult status =
            enqueue(d, prepared.functions[i], launch, gridOf(launch, state), stream, arguments, mayBeginEarly))
      failed = failCuda(status, launch.symbol);
    return failed == FAGEN_OK;
  });
  return failed;
}

} // namespace

fagen_status fagen_run(const fagen_choice *choice, const fagen_tensors *tensors, void *workspace,
                       size_t workspace_bytes, struct CUstream_st *stream) {
  fagen_status status = checkStruct(choice, "fagen_choice");
  status = status ? status : checkStruct(tensors, "fagen_tensors");
  if (status)
    return status;
  if (!choice->row)
    return fail(FAGEN_INVALID, "the choice was not filled by fagen_query");
  const fagen_row &row = *choice->row;
  if (isProgram(row))
    return fail(FAGEN_INVALID, "the choice is of program %s; fagen_run_program runs it", row.variant);
  const ChoiceState state = loadState(*choice);
  if (state.ctas == 0)
    return FAGEN_OK;
  status = checkTensors(row, state.params, *tensors);
  status = status
               ? status
               : checkWorkspace(row, choice->workspace_bytes, choice->workspace_alignment, workspace, workspace_bytes);
  if (status)
    return status;
  const PreparedRow *prepared = nullptr;
  if ((status = findPrepared(*choice, prepared)))
    return status;
  LaunchArgument argument;
  if ((status = setForm(*choice, *tensors, argument)))
    return status;
  argument.params = argumentsOf(row, state.params, *tensors, choice->workspace_bytes ? workspace : nullptr);
  status = launch(*prepared, argument, state, stream, *choice->device);
  return status ? status : clear(*driver(), *choice, state, workspace, stream);
}
