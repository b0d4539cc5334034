// fagen: checks on a GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "gpu_device.h"
#include "counters.h"

#include <fmt/format.h>
#include <optional>

namespace fagen::lab {

static CuDevicePtr asDevicePtr(const void *memory) { return reinterpret_cast<CuDevicePtr>(memory); }

void *GpuDevice::allocate(int64_t bytes) {
  CuDevicePtr memory = 0;
  checkCuda(measuringDriver().cuMemAlloc(&memory, bytes), fmt::format("allocate {} B", bytes).c_str());
  return reinterpret_cast<void *>(memory);
}

void GpuDevice::release(void *memory) { measuringDriver().cuMemFree(asDevicePtr(memory)); }

/// A copy from pageable memory returns once the bytes are staged; they may reach the GPU later, and a non-blocking
/// stream does not wait for them. So this waits for the null stream, on which such copies run.
void GpuDevice::upload(void *to, const void *from, int64_t bytes) {
  checkCuda(measuringDriver().cuMemcpyHtoD(asDevicePtr(to), from, bytes), "copy to the GPU");
  checkCuda(measuringDriver().cuStreamSynchronize(nullptr), "copy to the GPU");
}

void GpuDevice::download(void *to, const void *from, int64_t bytes) {
  checkCuda(measuringDriver().cuMemcpyDtoH(to, asDevicePtr(from), bytes), "copy from the GPU");
}

Built GpuDevice::build(const Launch &launch) {
  const fagen_table *table = launch.set->table();
  fagen_choice choice = makeAbi<fagen_choice>();
  fagen_status status = fagen_query(&table, 1, &launch.problem, gpu.device(), &choice);
  if (status == FAGEN_OK)
    status = fagen_prepare(&choice, gpu.device());
  if (status != FAGEN_OK)
    return {fmt::format("{}: {}", fagen_status_name(status), fagen_last_error()), "nvrtc"};
  fagen_choice_info info = makeAbi<fagen_choice_info>();
  checkStatus(fagen_choice_get_info(&choice, &info), "describe a choice");
  return {"", info.origin, info.registers, info.local_bytes};
}

std::vector<Failure> GpuDevice::run(const Launch &launch) {
  const fagen_table *table = launch.set->table();
  fagen_choice choice = makeAbi<fagen_choice>();
  auto failed = [](const char *call, fagen_status status) {
    return std::vector<Failure>{
        {"launch", fmt::format("{}: {}: {}", call, fagen_status_name(status), fagen_last_error())}};
  };
  if (fagen_status status = fagen_query(&table, 1, &launch.problem, gpu.device(), &choice))
    return failed("fagen_query", status);
  if (fagen_status status = fagen_prepare(&choice, gpu.device()))
    return failed("fagen_prepare", status);
  std::optional<DeviceMemory> own;
  void *workspace = launch.workspace;
  if (!workspace && choice.workspace_bytes) {
    std::vector<char> zeros(choice.workspace_bytes);
    workspace = own.emplace(*this, static_cast<int64_t>(zeros.size())).address();
    upload(workspace, zeros.data(), static_cast<int64_t>(zeros.size()));
  }
  if (fagen_status status = fagen_run(&choice, &launch.tensors, workspace, choice.workspace_bytes, gpu.stream()))
    return failed("fagen_run", status);
  // An illegal access ends the context: nothing after it could be trusted.
  checkCuda(measuringDriver().cuStreamSynchronize(gpu.stream()), fmt::format("run {}", launch.row->variant).c_str());
  if (!own || !isCounter(*launch.row))
    return {};
  std::vector<char> left(choice.workspace_bytes);
  download(left.data(), workspace, static_cast<int64_t>(left.size()));
  return checkCounter(*launch.row, left);
}

bool hasGpu() {
  fagen_device *device = nullptr;
  bool present = fagen_device_create(0, &device) == FAGEN_OK;
  fagen_device_destroy(device);
  return present;
}

std::unique_ptr<TestDevice> makeGpuDevice() { return std::make_unique<GpuDevice>(); }

} // namespace fagen::lab
