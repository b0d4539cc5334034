// fagen: what all launches share: the workspace that they get, the prepared row, the driver's call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "device.h"

namespace fagen {

inline bool aligned(const void *pointer, uint32_t alignment) {
  return (reinterpret_cast<uintptr_t>(pointer) & (alignment - 1)) == 0;
}

/// Whether a workspace of `bytes` holds what the row needs. WORKSPACE.
fagen_status checkWorkspace(const fagen_row &row, uint64_t needed, uint32_t alignment, const void *workspace,
                            size_t bytes);

/// The choice's row, ready to launch on its device. NOT_PREPARED, CUDA.
fagen_status findPrepared(const fagen_choice &choice, const PreparedRow *&prepared);

/// With mayBeginEarly the launch may begin before the one before it in the stream has ended: its kernel waits for that.
CuResult enqueue(const Driver &d, CuFunction function, const fagen_launch &launch, uint32_t ctas, CuStream stream,
                 void **arguments, bool mayBeginEarly);

} // namespace fagen
