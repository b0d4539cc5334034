// fagen: the functions that expressions of the IR call.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/math.h>

namespace fagen::device {

__device__ __forceinline__ float exp2(float x) { return ptx::exp2(x); }
__device__ __forceinline__ float log2(float x) { return ptx::log2(x); }
__device__ __forceinline__ float tanh(float x) { return ptx::tanh(x); }
__device__ __forceinline__ float abs(float x) { return ptx::bits_float(ptx::float_bits(x) & 0x7fffffffu); }
__device__ __forceinline__ int abs(int x) { return x < 0 ? -x : x; }
__device__ __forceinline__ float max(float a, float b) { return ptx::max(a, b); }
__device__ __forceinline__ float min(float a, float b) { return -ptx::max(-a, -b); }
__device__ __forceinline__ float sqrt(float x) { return ptx::sqrt(x); }
__device__ __forceinline__ float f32(int x) { return static_cast<float>(x); }
/// Towards zero; what an int cannot hold becomes its end, NaN 0.
__device__ __forceinline__ int i32(float x) {
  constexpr float kEnd = 2147483648.0f;
  return x >= kEnd ? 0x7fffffff : x <= -kEnd ? -0x7fffffff - 1 : x == x ? static_cast<int>(x) : 0;
}

} // namespace fagen::device
