// fagen: the CUDA driver's functions, found in libcuda.so.1.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cuda.h"

#include "shim.h"

#include <dlfcn.h>

namespace fagen::torch::cuda {
namespace {

struct Driver {
  int (*currentContext)(const void **context);
  int (*isCapturing)(CUstream_st *stream, int *status);
  int (*setBytes)(unsigned long long memory, unsigned char value, size_t count, CUstream_st *stream);

  Driver() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    currentContext = reinterpret_cast<decltype(currentContext)>(dlsym(library, "cuCtxGetCurrent"));
    isCapturing = reinterpret_cast<decltype(isCapturing)>(dlsym(library, "cuStreamIsCapturing"));
    setBytes = reinterpret_cast<decltype(setBytes)>(dlsym(library, "cuMemsetD8Async"));
  }
};

const Driver &driver() {
  static const Driver driver;
  return driver;
}

} // namespace

const void *currentContext() {
  const void *context = nullptr;
  if (driver().currentContext(&context))
    fail("fagen.CudaError: cuCtxGetCurrent failed");
  return context;
}

bool isCapturing(CUstream_st *stream) {
  int status = 0;
  if (driver().isCapturing(stream, &status))
    fail("fagen.CudaError: cuStreamIsCapturing failed");
  return status != 0;
}

void zero(void *memory, size_t bytes, CUstream_st *stream) {
  if (driver().setBytes(reinterpret_cast<uintptr_t>(memory), 0, bytes, stream))
    fail("fagen.CudaError: cuMemsetD8Async failed");
}

} // namespace fagen::torch::cuda
