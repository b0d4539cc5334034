// fagen: the CUDA driver's functions that the operators call themselves. Valid once the runtime has a device.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstddef>

struct CUstream_st;

namespace fagen::torch::cuda {

/// This thread's current context, by which a device is known; null: none.
const void *currentContext();

/// Whether the stream's launches are captured into a graph.
bool isCapturing(CUstream_st *stream);

/// Makes bytes of the GPU's memory zero, in the stream's order.
void zero(void *memory, size_t bytes, CUstream_st *stream);

} // namespace fagen::torch::cuda
