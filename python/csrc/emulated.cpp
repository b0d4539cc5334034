// fagen: fagen's operators on CPU tensors, by the emulator: for tests. No part of the package.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lab/device/device.h"
#include "lab/program/run.h"
#include "runtime/src/forms/args.h"

#include <cstdio>
#include <cstring>
#include <mutex>

namespace fagen::lab {
namespace {

/// The kernel sets of a directory, and the GPU that the emulator stands for.
struct Emulated {
  std::vector<std::unique_ptr<KernelSet>> sets;
  std::vector<const fagen_table *> tables;
  fagen_device *gpu = nullptr;
  std::unique_ptr<TestDevice> device;
};

std::mutex mutex;
Emulated emulated;

/// What lies at a tensor of these sizes and strides, from its first element of so many bytes to its last.
MemoryView view(const char *name, const void *begin, std::array<int64_t, 4> sizes, const int64_t *strides,
                bool writable, int64_t bytes = 2) {
  int64_t span = sizes[3];
  for (int i = 0; i < 3; ++i)
    span += sizes[i] > 1 ? (sizes[i] - 1) * strides[i] : 0;
  for (int64_t size : sizes)
    span = size ? span : 0;
  return {name, const_cast<void *>(begin), span * bytes, writable, nullptr};
}

/// Where the data of this name lies; null where no arg says so.
const void *dataOf(const char *name, const fagen_arg *args, uint32_t count) {
  for (const fagen_arg *arg = args; arg != args + count; ++arg)
    if (arg->data && strcmp(arg->name, name) == 0)
      return arg->data;
  return nullptr;
}

/// What a launch may read of its form's args.
void addArgs(const fagen_problem &problem, const fagen_tensors &tensors, const fagen_choice &choice,
             std::vector<MemoryView> &memory) {
  const fagen_form *form = formOf(*choice.table, choice.row->mask);
  Problem known;
  if (!form || readProblem(&problem, known) || readForm({&choice.table, 1}, known))
    return;
  for (uint32_t i = 0; i < form->param_count; ++i) {
    const fagen_form_param &param = paramAt(*form, i);
    const void *data = dataOf(param.name, tensors.args, tensors.arg_count);
    if (!data) // those of a settled call may be of tensors that are gone
      data = dataOf(param.name, problem.args, problem.arg_count);
    if (!data)
      continue;
    const int64_t elements = param.rank ? spanOf(*form, i, known) : 1;
    memory.push_back({param.name, const_cast<void *>(data), elements * alignmentOf(param), false, nullptr});
  }
}

/// The launch of the row that dispatch takes. Throws UserError when there is none.
Launch launchOf(const fagen_problem &problem, const fagen_tensors &tensors) {
  fagen_choice choice = makeAbi<fagen_choice>();
  if (fagen_query(emulated.tables.data(), emulated.tables.size(), &problem, emulated.gpu, &choice))
    throw UserError(fagen_last_error());
  Launch launch;
  for (const auto &set : emulated.sets)
    if (set->table() == choice.table)
      launch.set = set.get();
  launch.row = choice.row;
  launch.problem = problem;
  launch.problem.variant = choice.row->variant;
  launch.tensors = tensors;
  const auto &p = problem;
  const int64_t ofKeys = p.kv_dtype == FAGEN_DTYPE_E4M3 || p.kv_dtype == FAGEN_DTYPE_E5M2 ? 1 : 2;
  launch.memory = {view("Q", tensors.q, {p.batch, p.heads, p.seq_q, p.head_dim_qk}, p.q_stride, false),
                   view("K", tensors.k, {p.batch, p.kv_heads, p.seq_kv, p.head_dim_qk}, p.k_stride, false, ofKeys),
                   view("V", tensors.v, {p.batch, p.kv_heads, p.seq_kv, p.head_dim_v}, p.v_stride, false, ofKeys),
                   view("O", tensors.o, {p.batch, p.heads, p.seq_q, p.head_dim_v}, p.o_stride, true)};
  if (tensors.lse)
    launch.memory.push_back({"LSE", tensors.lse, p.batch * p.heads * p.seq_q * 4, true, nullptr});
  addArgs(problem, tensors, choice, launch.memory);
  return launch;
}

fagen_status say(fagen_status status, char *error, size_t size, const std::string &text) {
  snprintf(error, size, "%s", text.c_str());
  return status;
}

} // namespace
} // namespace fagen::lab

using namespace fagen::lab;

extern "C" {
/// Reads the kernel sets of a directory, for a GPU of this compute capability. OK, or the reason in `error`.
FAGEN_API fagen_status fagen_torch_emulator_open(const char *directory, uint32_t capability, char *error,
                                                 size_t errorSize) {
  std::lock_guard lock(mutex);
  try {
    emulated.sets = loadKernelSets({directory});
    emulated.tables.clear();
    for (const auto &set : emulated.sets)
      emulated.tables.push_back(set->table());
    if (fagen_device_describe(capability, 132, &emulated.gpu))
      throw UserError(fagen_last_error());
    emulated.device = makeEmulatorDevice();
    return FAGEN_OK;
  } catch (const std::exception &problem) {
    return say(FAGEN_INVALID, error, errorSize, problem.what());
  }
}

/// Runs a call of a program of a directory's kernel sets, for a GPU of this compute capability.
FAGEN_API fagen_status fagen_torch_emulate_program(const char *directory, uint32_t capability, const fagen_call *call,
                                                   char *error, size_t errorSize) {
  std::lock_guard lock(mutex);
  fagen_device *gpu = nullptr;
  try {
    const auto sets = loadKernelSets({directory});
    std::vector<const fagen_table *> tables;
    for (const auto &set : sets)
      tables.push_back(set->table());
    fagen_choice choice = makeAbi<fagen_choice>();
    fagen_status status = fagen_device_describe(capability, 2, &gpu);
    status = status ? status : fagen_query_program(tables.data(), tables.size(), call, gpu, &choice);
    fagen_device_destroy(gpu);
    if (status)
      return say(status, error, errorSize, fagen_last_error());
    for (const auto &set : sets)
      if (set->table() == choice.table)
        for (const Failure &failure : emulateCall(set->sourcePath(*choice.row).string(), *choice.row, *call, 0))
          return say(FAGEN_INVALID, error, errorSize, failure.message);
    return FAGEN_OK;
  } catch (const std::exception &problem) {
    return say(FAGEN_INVALID, error, errorSize, problem.what());
  }
}

/// What fagen_torch_set_emulator takes. A finding of the emulator, a race say, is an error.
FAGEN_API fagen_status fagen_torch_emulate(const fagen_problem *problem, const fagen_tensors *tensors, char *error,
                                           size_t errorSize) {
  std::lock_guard lock(mutex);
  try {
    for (const Failure &failure : emulated.device->run(launchOf(*problem, *tensors)))
      return say(FAGEN_INVALID, error, errorSize, failure.message);
    return FAGEN_OK;
  } catch (const UserError &refusal) {
    return say(FAGEN_UNSUPPORTED, error, errorSize, refusal.what());
  } catch (const std::exception &problem) {
    return say(FAGEN_INVALID, error, errorSize, problem.what());
  }
}
}
