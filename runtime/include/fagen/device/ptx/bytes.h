// fagen: conversions of floats of one byte. PTX ISA, cvt.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Pairs, because the instructions take two. sm_89 and above.
#pragma once

#include <fagen/device/types.h>

namespace fagen::device::ptx {

/// Two f32 to a pair of bytes, `low` in the lower one: to nearest even; beyond the largest number, infinities among
/// them, that number with its sign; NaN is 0x7f.
template <class T> __device__ __forceinline__ unsigned short round_bytes(float low, float high);
template <> __device__ __forceinline__ unsigned short round_bytes<e4m3>(float low, float high) {
  unsigned short result;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(result) : "f"(high), "f"(low));
  return result;
}
template <> __device__ __forceinline__ unsigned short round_bytes<e5m2>(float low, float high) {
  unsigned short result;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(result) : "f"(high), "f"(low));
  return result;
}

/// A pair of bytes to a pair of f16, exact; NaN is 0x7fff.
template <class T> __device__ __forceinline__ unsigned widen_bytes(unsigned short pair);
template <> __device__ __forceinline__ unsigned widen_bytes<e4m3>(unsigned short pair) {
  unsigned result;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(result) : "h"(pair));
  return result;
}
template <> __device__ __forceinline__ unsigned widen_bytes<e5m2>(unsigned short pair) {
  unsigned result;
  asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(result) : "h"(pair));
  return result;
}

} // namespace fagen::device::ptx
