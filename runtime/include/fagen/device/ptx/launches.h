// fagen: launches that begin before the one before them in the stream has ended. PTX ISA, Parallel Synchronization:
// griddepcontrol.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::device::ptx {

/// The thread goes on when the launches before this one have ended, and sees what they wrote. At once where this one
/// was not launched before that. sm_90.
__device__ __forceinline__ void await_launches() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

/// The next launch may begin when each CTA of this one has come here, or has ended. sm_90.
__device__ __forceinline__ void release_launches() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

} // namespace fagen::device::ptx
