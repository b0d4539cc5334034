// fagen: matrix instructions of one warp, one instruction a function.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generated from MmaInstrs.td by fagen-tblgen. Do not edit.
//
// A is row-major, B column-major; MmaInstrs.td says which lane holds which element.
#pragma once

#include <fagen/device/ptx/site.h>
#include <fagen/device/types.h>

namespace fagen::device::ptx {

/// D += A B for one m16n8k16 tile of f16 with f32 accumulators.
/// PTX ISA, Warp-level matrix instructions: mma, matrix fragments for mma.m16n8k16 with floating point type.
__device__ __forceinline__ void mma_m16n8k16_f32_f16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                                     Site = Site::here()) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// D += A B for one m16n8k16 tile of bf16 with f32 accumulators.
/// PTX ISA, Warp-level matrix instructions: mma, matrix fragments for mma.m16n8k16 with floating point type.
__device__ __forceinline__ void mma_m16n8k16_f32_bf16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                                      Site = Site::here()) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// D += A B for one m16n8k16 tile of f16 with f16 accumulators.
/// PTX ISA, Warp-level matrix instructions: mma, matrix fragments for mma.m16n8k16 with floating point type.
__device__ __forceinline__ void mma_m16n8k16_f16_f16(unsigned (&d)[2], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                                     Site = Site::here()) {
  asm("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(d[0]), "+r"(d[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

} // namespace fagen::device::ptx
