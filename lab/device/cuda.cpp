// fagen: loads the measuring functions of the CUDA driver and opens the GPU.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cuda.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <type_traits>

namespace fagen::lab {

static MeasuringDriver loadMeasuringDriver() {
  if (!fagen::driver())
    throw NoGpu(fmt::format("this machine has no GPU to use: {}", fagen_last_error()));
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto find = [&](const char *symbol, auto &function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
    if (!function)
      throw UserError(fmt::format("the CUDA driver is too old: libcuda.so.1 has no {}", symbol));
  };
  MeasuringDriver d;
  find("cuDriverGetVersion", d.cuDriverGetVersion);
  find("cuMemAlloc_v2", d.cuMemAlloc);
  find("cuMemFree_v2", d.cuMemFree);
  find("cuMemGetInfo_v2", d.cuMemGetInfo);
  find("cuMemsetD32Async", d.cuMemsetD32Async);
  find("cuMemcpyHtoD_v2", d.cuMemcpyHtoD);
  find("cuMemcpyDtoH_v2", d.cuMemcpyDtoH);
  find("cuMemcpyDtoDAsync_v2", d.cuMemcpyDtoDAsync);
  find("cuDeviceGetPCIBusId", d.cuDeviceGetPCIBusId);
  find("cuStreamCreate", d.cuStreamCreate);
  find("cuStreamDestroy_v2", d.cuStreamDestroy);
  find("cuStreamSynchronize", d.cuStreamSynchronize);
  find("cuStreamBeginCapture_v2", d.cuStreamBeginCapture);
  find("cuStreamEndCapture", d.cuStreamEndCapture);
  find("cuGraphInstantiateWithFlags", d.cuGraphInstantiate);
  find("cuGraphLaunch", d.cuGraphLaunch);
  find("cuGraphExecDestroy", d.cuGraphExecDestroy);
  find("cuGraphDestroy", d.cuGraphDestroy);
  find("cuEventCreate", d.cuEventCreate);
  find("cuEventDestroy_v2", d.cuEventDestroy);
  find("cuEventRecord", d.cuEventRecord);
  find("cuEventRecordWithFlags", d.cuEventRecordWithFlags);
  find("cuEventQuery", d.cuEventQuery);
  find("cuEventSynchronize", d.cuEventSynchronize);
  find("cuEventElapsedTime", d.cuEventElapsedTime);
  return d;
}

const MeasuringDriver &measuringDriver() {
  static const MeasuringDriver driver = loadMeasuringDriver();
  return driver;
}

void checkCuda(CuResult result, const char *action) {
  if (result == kCudaSuccess)
    return;
  failCuda(result, action);
  throw DeviceError(fagen_last_error());
}

void checkStatus(fagen_status status, const char *action) {
  if (status != FAGEN_OK)
    throw DeviceError(fmt::format("{}: {}: {}", action, fagen_status_name(status), fagen_last_error()));
}

Gpu::Gpu() {
  const MeasuringDriver &d = measuringDriver();
  if (fagen_device_create(0, &handle) != FAGEN_OK)
    throw UserError(fmt::format("this machine has no GPU to use: {}", fagen_last_error()));
  checkStatus(fagen_device_make_current(handle), "make the context current");
  checkStatus(fagen_device_get_info(handle, &description), "describe the GPU");
  checkCuda(d.cuStreamCreate(&work, 1 /* non-blocking */), "create a stream");
}

Gpu::~Gpu() {
  measuringDriver().cuStreamDestroy(work);
  fagen_device_destroy(handle);
}

std::string Gpu::driverVersion() const {
  int version = 0;
  checkCuda(measuringDriver().cuDriverGetVersion(&version), "read the driver's version");
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string Gpu::pciBusId() const {
  char text[32] = "";
  checkCuda(measuringDriver().cuDeviceGetPCIBusId(text, sizeof text, description.ordinal), "read the PCI address");
  return text;
}

int64_t Gpu::l2Bytes() const {
  constexpr int kL2Bytes = 38; // CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
  int bytes = 0;
  checkCuda(fagen::driver()->cuDeviceGetAttribute(&bytes, kL2Bytes, description.ordinal), "read the size of the L2");
  return bytes;
}

int64_t Gpu::freeBytes() const {
  size_t free = 0, total = 0;
  checkCuda(measuringDriver().cuMemGetInfo(&free, &total), "read the free memory");
  return static_cast<int64_t>(free);
}

} // namespace fagen::lab
