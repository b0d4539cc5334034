// fagen: who this thread is.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace fagen::device::ptx {

/// Index of the thread in its CTA (one-dimensional). PTX ISA, Special Registers: %tid.
__device__ __forceinline__ int thread_index() { return static_cast<int>(threadIdx.x); }

/// Index of the CTA in the grid (one-dimensional). PTX ISA, Special Registers: %ctaid.
__device__ __forceinline__ int cta_index() { return static_cast<int>(blockIdx.x); }

/// CTAs of the grid. PTX ISA, Special Registers: %nctaid.
__device__ __forceinline__ int cta_count() { return static_cast<int>(gridDim.x); }

/// Index of the thread in its warp.
__device__ __forceinline__ int lane_index() { return thread_index() % 32; }

/// Index of the warp in its CTA.
__device__ __forceinline__ int warp_index() { return thread_index() / 32; }

} // namespace fagen::device::ptx
