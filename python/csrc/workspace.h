// fagen: memory that PyTorch's launches count and merge in, on a stream or in a graph.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "shim.h"

#include <fagen/fagen.h>

namespace fagen::torch {

/// Where a launch goes.
struct Place {
  fagen_device *device;
  int ordinal;
  CUstream_st *stream;
};

/// The workspace of one launch, as fagen_choice asks for it: what the runtime lends. Only the parts of splits in a
/// launch that is being captured are memory of the graph, so that they end with it; a node zeroes their counters.
class Workspace {
public:
  /// Fails where there is no memory. The device's context is current.
  Workspace(const fagen_choice &choice, const Place &place);

  void *data() const { return memory; }
  size_t bytes() const { return size; }

private:
  void takeFromGraph(const fagen_choice &choice, const Place &place);

  void *memory = nullptr;
  size_t size = 0;
  Tensor ofGraph;
};

} // namespace fagen::torch
