// fagen: GPUs and their streams' memory, for whoever launches on behalf of a framework.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each function gives null where it fails, with the reason in `error`, which lives on.
#pragma once

#include <fagen/fagen.h>

namespace fagen::python {

/// The runtime's device of a CUDA ordinal, made once. `error` is fagen_last_error().
fagen_device *deviceOf(int ordinal, const char *&error);

/// Zeroed memory of a stream for launches one after the other, at least so large, kept for the life of the process. It
/// comes from the driver, not from a framework's allocator: in a pool of a graph it would count as a leak. The device's
/// context is current.
void *streamMemory(int ordinal, CUstream_st *stream, size_t bytes, const char *&error);

/// 1 while the stream captures a graph, 0 while it does not, -1 where it cannot be told.
int isCapturing(CUstream_st *stream, const char *&error);

/// Zeroes memory, in the order of the stream, or of the graph that it captures.
bool zero(void *memory, size_t bytes, CUstream_st *stream, const char *&error);

} // namespace fagen::python
