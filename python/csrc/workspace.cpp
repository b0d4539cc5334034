// fagen: workspaces of PyTorch's launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "workspace.h"

#include <dlfcn.h>

namespace fagen::torch {
namespace {

/// The driver's functions, which are there once the runtime has a device.
struct Driver {
  int (*isCapturing)(CUstream_st *stream, int *status);
  int (*setBytes)(unsigned long long memory, unsigned char value, size_t count, CUstream_st *stream);

  Driver() {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    isCapturing = reinterpret_cast<decltype(isCapturing)>(dlsym(library, "cuStreamIsCapturing"));
    setBytes = reinterpret_cast<decltype(setBytes)>(dlsym(library, "cuMemsetD8Async"));
  }
};

const Driver &driver() {
  static const Driver driver;
  return driver;
}

bool isCapturing(CUstream_st *stream) {
  int status = 0;
  if (driver().isCapturing(stream, &status))
    fail("fagen.CudaError: cuStreamIsCapturing failed");
  return status != 0;
}

} // namespace

Workspace::Workspace(const fagen_choice &choice, const Place &place) : size(choice.workspace_bytes) {
  if (!size)
    return;
  if (choice.scratch_bytes && isCapturing(place.stream))
    takeFromGraph(choice, place);
  else if (fagen_lend_workspace(&choice, place.device, place.stream, &memory) != FAGEN_OK)
    fail("fagen.CudaError: %s", fagen_last_error());
}

void Workspace::takeFromGraph(const fagen_choice &choice, const Place &place) {
  const int64_t bytes = static_cast<int64_t>(size);
  ofGraph =
      emptyTensor(&bytes, 1, shim().aoti_torch_dtype_uint8(), shim().aoti_torch_device_type_cuda(), place.ordinal);
  memory = ofGraph.data();
  const size_t zeros = fagen_choice_zero_bytes(&choice);
  if (zeros && driver().setBytes(reinterpret_cast<uintptr_t>(memory), 0, zeros, place.stream))
    fail("fagen.CudaError: cuMemsetD8Async failed");
}

} // namespace fagen::torch
