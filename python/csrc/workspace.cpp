// fagen: workspaces of PyTorch's launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "workspace.h"

namespace fagen::torch {

Workspace::Workspace(const fagen_choice &choice, int device, CUstream_st *stream) : size(choice.workspace_bytes) {
  if (!size)
    return;
  const char *error = nullptr;
  const int capturing = python::isCapturing(stream, error);
  if (capturing == 0)
    memory = python::streamMemory(device, stream, size, error);
  if (error)
    fail("fagen.CudaError: %s", error);
  if (!capturing)
    return;
  const int64_t bytes = static_cast<int64_t>(size);
  ofGraph = emptyTensor(&bytes, 1, shim().aoti_torch_dtype_uint8(), shim().aoti_torch_device_type_cuda(), device);
  memory = ofGraph.data();
  const size_t zeros = fagen_choice_zero_bytes(&choice);
  if (zeros && !python::zero(memory, zeros, stream, error))
    fail("fagen.CudaError: %s", error);
}

} // namespace fagen::torch
