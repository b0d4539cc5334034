// fagen: workspaces of PyTorch's launches.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "workspace.h"

#include "cuda.h"

namespace fagen::torch {

Workspace::Workspace(const fagen_choice &choice, const Place &place) : size(choice.workspace_bytes) {
  if (!size)
    return;
  if (choice.scratch_bytes && cuda::isCapturing(place.stream))
    takeFromGraph(choice, place);
  else if (fagen_lend_workspace(&choice, place.device, place.stream, &memory) != FAGEN_OK)
    fail("fagen.CudaError: %s", fagen_last_error());
}

void Workspace::takeFromGraph(const fagen_choice &choice, const Place &place) {
  const int64_t bytes = static_cast<int64_t>(size);
  ofGraph =
      emptyTensor(&bytes, 1, shim().aoti_torch_dtype_uint8(), shim().aoti_torch_device_type_cuda(), place.ordinal);
  memory = ofGraph.data();
  if (const size_t zeros = fagen_choice_zero_bytes(&choice))
    cuda::zero(memory, zeros, place.stream);
}

} // namespace fagen::torch
