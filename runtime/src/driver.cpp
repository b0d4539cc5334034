// fagen: loads the CUDA driver.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "driver.h"

#include "error.h"

#include <dlfcn.h>
#include <string>

namespace fagen {
namespace {

struct Loaded {
  Driver driver = {};
  std::string problem; // why the driver cannot be used; empty: it can
};

/// "13.0" of 13000.
std::string cudaText(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

/// A driver without a function that CUDA 11.0 has; it may still tell its version.
std::string tooOld(void *library, const char *symbol) {
  auto read = reinterpret_cast<decltype(Driver::cuDriverGetVersion)>(dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  const bool isKnown = read && read(&version) == kCudaSuccess;
  return "the CUDA driver is too old: it is " + (isKnown ? "of CUDA " + cudaText(version) : "of an unknown CUDA") +
         " and lacks " + symbol + "; a driver of CUDA " + cudaText(kOldestCuda) + " or later is needed";
}

template <typename Function> void find(void *library, const char *symbol, Function &function, std::string &problem) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  if (!function && problem.empty())
    problem = tooOld(library, symbol);
}

Loaded load() {
  Loaded result;
  Driver &d = result.driver;
  std::string &problem = result.problem;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    problem = std::string("no CUDA driver: ") + dlerror();
    return result;
  }
  find(library, "cuInit", d.cuInit, problem);
  find(library, "cuDriverGetVersion", d.cuDriverGetVersion, problem);
  find(library, "cuDeviceGet", d.cuDeviceGet, problem);
  find(library, "cuDeviceGetAttribute", d.cuDeviceGetAttribute, problem);
  find(library, "cuDeviceGetName", d.cuDeviceGetName, problem);
  find(library, "cuDevicePrimaryCtxRetain", d.cuDevicePrimaryCtxRetain, problem);
  find(library, "cuDevicePrimaryCtxRelease_v2", d.cuDevicePrimaryCtxRelease, problem);
  find(library, "cuCtxGetCurrent", d.cuCtxGetCurrent, problem);
  find(library, "cuCtxSetCurrent", d.cuCtxSetCurrent, problem);
  find(library, "cuCtxGetDevice", d.cuCtxGetDevice, problem);
  find(library, "cuCtxPushCurrent_v2", d.cuCtxPushCurrent, problem);
  find(library, "cuCtxPopCurrent_v2", d.cuCtxPopCurrent, problem);
  find(library, "cuModuleLoadDataEx", d.cuModuleLoadDataEx, problem);
  find(library, "cuModuleUnload", d.cuModuleUnload, problem);
  find(library, "cuModuleGetFunction", d.cuModuleGetFunction, problem);
  find(library, "cuFuncGetAttribute", d.cuFuncGetAttribute, problem);
  find(library, "cuFuncSetAttribute", d.cuFuncSetAttribute, problem);
  find(library, "cuLaunchKernel", d.cuLaunchKernel, problem);
  find(library, "cuMemAlloc_v2", d.cuMemAlloc, problem);
  find(library, "cuMemFree_v2", d.cuMemFree, problem);
  find(library, "cuMemsetD8Async", d.cuMemsetD8Async, problem);
  find(library, "cuStreamCreate", d.cuStreamCreate, problem);
  find(library, "cuStreamDestroy_v2", d.cuStreamDestroy, problem);
  find(library, "cuStreamSynchronize", d.cuStreamSynchronize, problem);
  find(library, "cuStreamIsCapturing", d.cuStreamIsCapturing, problem);
  find(library, "cuThreadExchangeStreamCaptureMode", d.cuThreadExchangeStreamCaptureMode, problem);
  std::string unused; // kernels for older GPUs do without it
  find(library, "cuLaunchKernelEx", d.cuLaunchKernelEx, unused);
  find(library, "cuTensorMapEncodeTiled", d.cuTensorMapEncodeTiled, unused);
  find(library, "cuGetErrorName", d.cuGetErrorName, problem);
  find(library, "cuGetErrorString", d.cuGetErrorString, problem);
  if (!problem.empty())
    return result;
  if (CuResult status = d.cuInit(0)) {
    const char *name = nullptr;
    d.cuGetErrorName(status, &name);
    problem = std::string("the CUDA driver does not start: ") + (name ? name : std::to_string(status));
  }
  return result;
}

const Loaded &loaded() {
  static const Loaded instance = load();
  return instance;
}

} // namespace

const Driver *driver() {
  const Loaded &instance = loaded();
  if (instance.problem.empty())
    return &instance.driver;
  fail(FAGEN_CUDA, "%s", instance.problem.c_str());
  return nullptr;
}

int driverCuda() {
  int version = 0;
  const Loaded &instance = loaded();
  return instance.problem.empty() && instance.driver.cuDriverGetVersion(&version) == kCudaSuccess ? version : 0;
}

fagen_status failCuda(CuResult result, const char *action) {
  const char *name = nullptr, *text = nullptr;
  const Driver &d = loaded().driver;
  d.cuGetErrorName(result, &name);
  d.cuGetErrorString(result, &text);
  fagen_status status = result == kCudaOutOfMemory ? FAGEN_OUT_OF_MEMORY : FAGEN_CUDA;
  return fail(status, "cannot %s: %s (%d): %s", action, name ? name : "unknown error", result, text ? text : "");
}

} // namespace fagen
