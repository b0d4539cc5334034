// fagen: how a warp group's product finds an operand in shared memory. PTX ISA, Asynchronous Warpgroup Level Matrix:
// matrix descriptor. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An operand is made of core matrices: 8 rows of one swizzle row (128, 64, 32 or, without swizzle, 16 bytes), one row
// after the other. A row runs along K, or along M or N where the operand is "MN-major". Hardware permutes address bits
// 4 to 6 by bits 7 to 9 (128B; fewer of both for the others), so patterns must begin at multiples of 1024, 512 or 256
// bytes, and an operand that begins inside a row is reached by adding bytes to the address.
#pragma once

#include <fagen/device/tensor_map.h>

namespace fagen::device::ptx {

/// Which dimension of an operand runs along the rows in shared memory.
enum class Major : int { kK = 0, kMn = 1 };

struct MatrixDescriptor {
  unsigned long long bits;
};

/// Bits 62 and 63.
__device__ __forceinline__ constexpr unsigned long long descriptor_mode(BoxSwizzle swizzle) {
  return swizzle == BoxSwizzle::k128B ? 1 : swizzle == BoxSwizzle::k64B ? 2 : swizzle == BoxSwizzle::k32B ? 3 : 0;
}

/// `leading_bytes`: MN-major, from one row of core matrices along M or N to the next (K-major with swizzle: not used);
/// `stride_bytes`: from 8 rows to the 8 below. All are multiples of 16 below 2^18.
__device__ __forceinline__ MatrixDescriptor matrix_descriptor(unsigned address, unsigned leading_bytes,
                                                              unsigned stride_bytes, BoxSwizzle swizzle) {
  return {static_cast<unsigned long long>(address >> 4 & 0x3fff) |
          static_cast<unsigned long long>(leading_bytes >> 4) << 16 |
          static_cast<unsigned long long>(stride_bytes >> 4) << 32 | descriptor_mode(swizzle) << 62};
}

/// The operand `bytes`, a multiple of 16, further on. One addition to the lower half.
__device__ __forceinline__ MatrixDescriptor advance(MatrixDescriptor descriptor, int bytes) {
  const unsigned low = static_cast<unsigned>(descriptor.bits) + (static_cast<unsigned>(bytes) >> 4);
  return {(descriptor.bits & 0xffffffff00000000ull) | low};
}

} // namespace fagen::device::ptx
