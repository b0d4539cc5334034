// fagen: memory that PyTorch's launches count and merge in, on a stream or in a graph.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shim.h"
#include "stream_memory.h"

namespace fagen::torch {

/// The workspace of one launch, as fagen_choice asks for it. A stream has one that its launches share, one after the
/// other; a launch that is being captured has one of the graph's own memory, zeroed by a node before it.
class Workspace {
public:
  /// Fails where there is no memory. The device's context is current.
  Workspace(const fagen_choice &choice, int device, CUstream_st *stream);

  void *data() const { return memory; }
  size_t bytes() const { return size; }

private:
  void *memory = nullptr;
  size_t size = 0;
  Tensor ofGraph;
};

} // namespace fagen::torch
