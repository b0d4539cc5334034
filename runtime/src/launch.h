// fagen: what all launches share: the workspace that they get, the prepared row, the driver's call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Inline: a launch takes a few microseconds, of which the host's part here is a tenth of one.
#pragma once

#include "device.h"
#include "error.h"

namespace fagen {

inline bool aligned(const void *pointer, uint32_t alignment) {
  return (reinterpret_cast<uintptr_t>(pointer) & (alignment - 1)) == 0;
}

/// Whether a workspace of `bytes` holds what the row needs. WORKSPACE.
inline fagen_status checkWorkspace(const fagen_row &row, uint64_t needed, uint32_t alignment, const void *workspace,
                                   size_t bytes) {
  if (needed == 0)
    return FAGEN_OK;
  if (!workspace || bytes < needed)
    return fail(FAGEN_WORKSPACE, "%s needs a workspace of %llu B; it got %zu B", row.variant,
                (unsigned long long)needed, workspace ? bytes : 0);
  if (!aligned(workspace, alignment))
    return fail(FAGEN_WORKSPACE, "the workspace is %p; it needs %u-byte alignment", workspace, alignment);
  return FAGEN_OK;
}

/// The choice's row, ready to launch on its device. NOT_PREPARED, CUDA.
inline fagen_status findPrepared(const fagen_choice &choice, const PreparedRow *&prepared) {
  prepared = choice.device->prepared.find(choice.row);
  if (!prepared)
    return fail(FAGEN_NOT_PREPARED, "%s is not prepared on this device; call fagen_prepare first", choice.row->variant);
  if (!prepared->module)
    return fail(FAGEN_CUDA, "the device is a description (%s), not a GPU", choice.device->name);
  return FAGEN_OK;
}

/// With mayBeginEarly the launch may begin before the one before it in the stream has ended: its kernel waits for that.
inline CuResult enqueue(const Driver &d, CuFunction function, const fagen_launch &launch, uint32_t ctas,
                        CuStream stream, void **arguments, bool mayBeginEarly) {
  if (!mayBeginEarly || !d.cuLaunchKernelEx)
    return d.cuLaunchKernel(function, ctas, 1, 1, launch.threads, 1, 1, launch.shared_bytes, stream, arguments,
                            nullptr);
  CuLaunchAttribute attribute{kLaunchProgrammaticStreamSerialization, {}, {1}};
  const CuLaunchConfig config{ctas, 1, 1, launch.threads, 1, 1, launch.shared_bytes, stream, &attribute, 1};
  return d.cuLaunchKernelEx(&config, function, arguments, nullptr);
}

} // namespace fagen
