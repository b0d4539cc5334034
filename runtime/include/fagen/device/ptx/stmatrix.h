// fagen: 8x8 matrices of 16-bit elements from fragments to shared memory. PTX ISA, Warp Level Matrix: stmatrix. sm_90.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/site.h>

namespace fagen::device::ptx {

/// Four matrices: lanes 8i to 8i+7 give the addresses of the rows of matrix i (16 bytes each, 16-byte aligned);
/// matrix[i] of lane l holds elements 2(l % 4) and 2(l % 4) + 1 of row l / 4 of matrix i.
__device__ __forceinline__ void stmatrix_x4(unsigned address, const unsigned (&matrix)[4], Site = Site::here()) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(matrix[0]),
               "r"(matrix[1]), "r"(matrix[2]), "r"(matrix[3])
               : "memory");
}

/// The same with every matrix transposed.
__device__ __forceinline__ void stmatrix_x4_trans(unsigned address, const unsigned (&matrix)[4], Site = Site::here()) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(matrix[0]),
               "r"(matrix[1]), "r"(matrix[2]), "r"(matrix[3])
               : "memory");
}

} // namespace fagen::device::ptx
