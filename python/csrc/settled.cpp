// fagen: dispatch, launches and their counts for PyTorch's operators.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "settled.h"

#include "cuda.h"
#include "devices.h"
#include "workspace.h"

#include <fagen/table.h>

#include <array>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace fagen::torch {
namespace {

constexpr int kMostKernelSets = 1024;
std::array<std::unique_ptr<const Tables>, kMostKernelSets> kernelSets;
std::atomic<int> kernelSetCount = 0;
Emulator emulator = nullptr;

std::mutex countsMutex;
std::unordered_map<const fagen_row *, std::atomic<uint64_t>> counts; ///< launches of each row

[[noreturn]] void failWith(fagen_status status) {
  switch (status) {
  case FAGEN_UNSUPPORTED:
    fail("fagen.Unsupported: %s", fagen_last_error());
  case FAGEN_MISALIGNED:
    fail("fagen.Misaligned: %s", fagen_last_error());
  case FAGEN_COMPILE:
    fail("fagen.CompileError: %s", fagen_last_error());
  case FAGEN_CUDA:
    fail("fagen.CudaError: %s", fagen_last_error());
  default:
    fail("fagen.Error: %s", fagen_last_error());
  }
}

void expect(fagen_status status) {
  if (status != FAGEN_OK)
    failWith(status);
}

const Tables &tablesOf(int64_t kernels) {
  if (kernels < 0 || kernels >= kernelSetCount.load(std::memory_order_acquire))
    fail("fagen.Error: no kernels of number %lld in this process", static_cast<long long>(kernels));
  return *kernelSets[kernels];
}

std::atomic<uint64_t> *countOf(const fagen_row *row) {
  std::lock_guard lock(countsMutex);
  return &counts[row];
}

/// The device is PyTorch's current one while it lives, and its context this thread's.
class CurrentDevice {
public:
  CurrentDevice(int index, fagen_device *device) {
    if (shim().aoti_torch_create_cuda_guard(index, &guard))
      fail("fagen.CudaError: no CUDA device %d", index);
    if (fagen_status status = fagen_device_make_current(device)) {
      shim().aoti_torch_delete_cuda_guard(guard);
      failWith(status);
    }
  }
  ~CurrentDevice() { shim().aoti_torch_delete_cuda_guard(guard); }
  CurrentDevice(const CurrentDevice &) = delete;
  CurrentDevice &operator=(const CurrentDevice &) = delete;

private:
  GuardHandle guard = nullptr;
};

void settleOnGpu(Settled &settled, const Call &call) {
  const int index = call.q.deviceIndex;
  if (!shim().aoti_torch_create_cuda_guard)
    fail("fagen.Unsupported: this PyTorch was built without CUDA");
  const Tables &tables = tablesOf(call.options.kernels);
  const char *error = nullptr;
  settled.device = python::deviceOf(index, error);
  if (!settled.device)
    fail("fagen.CudaError: %s", error);
  settled.choice = fagen_choice_init();
  expect(fagen_query(tables.data(), tables.size(), &settled.problem, settled.device, &settled.choice));
  const CurrentDevice current(index, settled.device);
  expect(fagen_prepare(&settled.choice, settled.device));
  settled.context = cuda::currentContext();
  settled.launches = countOf(settled.choice.row);
}

void runOnCpu(const Settled &settled, const fagen_tensors &tensors) {
  if (!emulator)
    fail("fagen.Unsupported: tensors are on the CPU; fagen computes on CUDA GPUs");
  char error[2048] = "";
  if (fagen_status status = emulator(&settled.problem, &tensors, error, sizeof(error)))
    fail("fagen.%s: the emulator: %s", status == FAGEN_UNSUPPORTED ? "Unsupported" : "Error", error);
}

void runOnGpu(const Settled &settled, const fagen_tensors &tensors, int index) {
  std::optional<CurrentDevice> current;
  if (cuda::currentContext() != settled.context)
    current.emplace(index, settled.device);
  void *stream = nullptr;
  if (shim().aoti_torch_get_current_cuda_stream(index, &stream))
    fail("fagen.CudaError: no current stream");
  const auto queue = static_cast<CUstream_st *>(stream);
  const Workspace workspace(settled.choice, {settled.device, index, queue});
  expect(fagen_run(&settled.choice, &tensors, workspace.data(), workspace.bytes(), queue));
  settled.launches->fetch_add(1, std::memory_order_relaxed);
}

/// What this thread has settled, by the key's hash; the newer of two of one place stays.
std::shared_ptr<const Settled> &placeOf(const Key &key) {
  constexpr size_t kPlaces = 256;
  thread_local std::array<std::shared_ptr<const Settled>, kPlaces> places;
  return places[hashOf(key) % kPlaces];
}

} // namespace

int addKernels(Tables tables) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  const int number = kernelSetCount.load(std::memory_order_relaxed);
  if (number == kMostKernelSets)
    return -1;
  kernelSets[number] = std::make_unique<Tables>(std::move(tables));
  kernelSetCount.store(number + 1, std::memory_order_release);
  return number;
}

void setEmulator(Emulator computes) { emulator = computes; }

void tellCounts(void (*each)(const char *variant, const char *target, uint64_t launches)) {
  std::lock_guard lock(countsMutex);
  for (const auto &[row, launches] : counts)
    if (const uint64_t number = launches.load(std::memory_order_relaxed))
      each(row->variant, row->target, number);
}

std::shared_ptr<const Settled> settle(const Call &call, const Key &key) {
  auto settled = std::make_shared<Settled>();
  settled->key = key;
  settled->problem = describe(call);
  if (call.form.signature) {
    settled->args = describeArgs(call.form, tablesOf(call.options.kernels), settled->problem, call.q);
    settled->problem.args = settled->args.data();
    settled->problem.arg_count = static_cast<uint32_t>(settled->args.size());
  }
  if (call.q.deviceType != shim().aoti_torch_device_type_cpu())
    settleOnGpu(*settled, call);
  return settled;
}

void run(const Settled &settled, const Call &call) {
  fagen_tensors tensors = pointersOf(call);
  std::vector<fagen_arg> args;
  if (call.form.signature) {
    args = settled.args;
    putPointers(call.form, args);
    tensors.args = args.data();
    tensors.arg_count = static_cast<uint32_t>(args.size());
  }
  if (settled.device)
    runOnGpu(settled, tensors, call.q.deviceIndex);
  else
    runOnCpu(settled, tensors);
}

void attend(const Call &call) {
  const Key key = keyOf(call);
  std::shared_ptr<const Settled> &place = placeOf(key);
  if (!place || place->key != key)
    place = settle(call, key);
  run(*place, call);
}

const Settled *findSettled(const Call &call) {
  const Key key = keyOf(call);
  const std::shared_ptr<const Settled> &place = placeOf(key);
  return place && place->key == key ? place.get() : nullptr;
}

} // namespace fagen::torch
