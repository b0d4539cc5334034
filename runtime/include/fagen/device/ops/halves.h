// fagen: 16-bit elements in the halves of a word.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/math.h>

namespace fagen::device {

/// Two neighbouring 16-bit elements of a word.
template <class T> __device__ __forceinline__ float low_half(unsigned word) {
  return ptx::to_float(T{static_cast<unsigned short>(word & 0xffff)});
}
template <class T> __device__ __forceinline__ float high_half(unsigned word) {
  return ptx::to_float(T{static_cast<unsigned short>(word >> 16)});
}

} // namespace fagen::device
