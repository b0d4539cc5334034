// fagen: matrix products of one warp by wmma m16n16k16, one instruction a function.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Generated from MmaInstrs.td by fagen-tblgen. Do not edit.
//
// 16 x 16 matrices in shared memory, by the address of their first element: a multiple of 32 bytes, `stride` a
// multiple of 16 bytes, both the same in all lanes. Which lane holds which element is not specified: a fragment may
// only be loaded, multiplied, stored, and changed where every element is treated alike.
#pragma once

#include <fagen/device/ptx/site.h>

namespace fagen::device::ptx {

/// A of f16, its rows `stride` elements apart. PTX ISA: wmma.load.a.
__device__ __forceinline__ void wmma_load_a_f16(unsigned (&a)[8], unsigned address, unsigned stride,
                                                Site = Site::here()) {
  asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]), "=r"(a[4]), "=r"(a[5]), "=r"(a[6]), "=r"(a[7])
               : "r"(address), "r"(stride)
               : "memory");
}

/// B of f16, its rows `stride` elements apart. PTX ISA: wmma.load.b.
__device__ __forceinline__ void wmma_load_b_f16_row(unsigned (&b)[8], unsigned address, unsigned stride,
                                                    Site = Site::here()) {
  asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.shared.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]), "=r"(b[4]), "=r"(b[5]), "=r"(b[6]), "=r"(b[7])
               : "r"(address), "r"(stride)
               : "memory");
}

/// B of f16, its columns `stride` elements apart. PTX ISA: wmma.load.b.
__device__ __forceinline__ void wmma_load_b_f16_col(unsigned (&b)[8], unsigned address, unsigned stride,
                                                    Site = Site::here()) {
  asm volatile("wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8], %9;"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]), "=r"(b[4]), "=r"(b[5]), "=r"(b[6]), "=r"(b[7])
               : "r"(address), "r"(stride)
               : "memory");
}

/// A of bf16, its rows `stride` elements apart. PTX ISA: wmma.load.a.
__device__ __forceinline__ void wmma_load_a_bf16(unsigned (&a)[4], unsigned address, unsigned stride,
                                                 Site = Site::here()) {
  asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
               : "r"(address), "r"(stride)
               : "memory");
}

/// B of bf16, its rows `stride` elements apart. PTX ISA: wmma.load.b.
__device__ __forceinline__ void wmma_load_b_bf16_row(unsigned (&b)[4], unsigned address, unsigned stride,
                                                     Site = Site::here()) {
  asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(address), "r"(stride)
               : "memory");
}

/// B of bf16, its columns `stride` elements apart. PTX ISA: wmma.load.b.
__device__ __forceinline__ void wmma_load_b_bf16_col(unsigned (&b)[4], unsigned address, unsigned stride,
                                                     Site = Site::here()) {
  asm volatile("wmma.load.b.sync.aligned.col.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
               : "r"(address), "r"(stride)
               : "memory");
}

/// D += A B of f16 with f32 accumulators, B loaded by rows.
/// PTX ISA, Warp-level matrix instructions: wmma.load, wmma.mma, wmma.store, fragments for .m16n16k16.
__device__ __forceinline__ void wmma_mma_f32_f16_row(float (&d)[8], const unsigned (&a)[8], const unsigned (&b)[8],
                                                     Site = Site::here()) {
  asm("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7}, "
      "{%8, %9, %10, %11, %12, %13, %14, %15}, "
      "{%16, %17, %18, %19, %20, %21, %22, %23}, "
      "{%0, %1, %2, %3, %4, %5, %6, %7};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]), "r"(b[1]),
        "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
}

/// D += A B of f16 with f32 accumulators, B loaded by columns.
/// PTX ISA, Warp-level matrix instructions: wmma.load, wmma.mma, wmma.store, fragments for .m16n16k16.
__device__ __forceinline__ void wmma_mma_f32_f16_col(float (&d)[8], const unsigned (&a)[8], const unsigned (&b)[8],
                                                     Site = Site::here()) {
  asm("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7}, "
      "{%8, %9, %10, %11, %12, %13, %14, %15}, "
      "{%16, %17, %18, %19, %20, %21, %22, %23}, "
      "{%0, %1, %2, %3, %4, %5, %6, %7};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]), "r"(b[1]),
        "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
}

/// D += A B of bf16 with f32 accumulators, B loaded by rows.
/// PTX ISA, Warp-level matrix instructions: wmma.load, wmma.mma, wmma.store, fragments for .m16n16k16.
__device__ __forceinline__ void wmma_mma_f32_bf16_row(float (&d)[8], const unsigned (&a)[4], const unsigned (&b)[4],
                                                      Site = Site::here()) {
  asm("wmma.mma.sync.aligned.row.row.m16n16k16.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7}, "
      "{%8, %9, %10, %11}, "
      "{%12, %13, %14, %15}, "
      "{%0, %1, %2, %3, %4, %5, %6, %7};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
}

/// D += A B of bf16 with f32 accumulators, B loaded by columns.
/// PTX ISA, Warp-level matrix instructions: wmma.load, wmma.mma, wmma.store, fragments for .m16n16k16.
__device__ __forceinline__ void wmma_mma_f32_bf16_col(float (&d)[8], const unsigned (&a)[4], const unsigned (&b)[4],
                                                      Site = Site::here()) {
  asm("wmma.mma.sync.aligned.row.col.m16n16k16.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3, %4, %5, %6, %7}, "
      "{%8, %9, %10, %11}, "
      "{%12, %13, %14, %15}, "
      "{%0, %1, %2, %3, %4, %5, %6, %7};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]));
}

/// D += A B of f16 with f16 accumulators, B loaded by rows.
/// PTX ISA, Warp-level matrix instructions: wmma.load, wmma.mma, wmma.store, fragments for .m16n16k16.
__device__ __forceinline__ void wmma_mma_f16_f16_row(unsigned (&d)[4], const unsigned (&a)[8], const unsigned (&b)[8],
                                                     Site = Site::here()) {
  asm("wmma.mma.sync.aligned.row.row.m16n16k16.f16.f16 "
      "{%0, %1, %2, %3}, "
      "{%4, %5, %6, %7, %8, %9, %10, %11}, "
      "{%12, %13, %14, %15, %16, %17, %18, %19}, "
      "{%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]), "r"(b[1]),
        "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
}

/// D += A B of f16 with f16 accumulators, B loaded by columns.
/// PTX ISA, Warp-level matrix instructions: wmma.load, wmma.mma, wmma.store, fragments for .m16n16k16.
__device__ __forceinline__ void wmma_mma_f16_f16_col(unsigned (&d)[4], const unsigned (&a)[8], const unsigned (&b)[8],
                                                     Site = Site::here()) {
  asm("wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 "
      "{%0, %1, %2, %3}, "
      "{%4, %5, %6, %7, %8, %9, %10, %11}, "
      "{%12, %13, %14, %15, %16, %17, %18, %19}, "
      "{%0, %1, %2, %3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]), "r"(a[6]), "r"(a[7]), "r"(b[0]), "r"(b[1]),
        "r"(b[2]), "r"(b[3]), "r"(b[4]), "r"(b[5]), "r"(b[6]), "r"(b[7]));
}

/// D of f32, row-major, its rows `stride` elements apart. PTX ISA: wmma.store.d.
__device__ __forceinline__ void wmma_store_d_f32(unsigned address, const float (&d)[8], unsigned stride,
                                                 Site = Site::here()) {
  asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%0], {%1, %2, %3, %4, %5, %6, %7, %8}, %9;"
               :
               : "r"(address), "f"(d[0]), "f"(d[1]), "f"(d[2]), "f"(d[3]), "f"(d[4]), "f"(d[5]), "f"(d[6]), "f"(d[7]),
                 "r"(stride)
               : "memory");
}

/// D of f16, row-major, its rows `stride` elements apart. PTX ISA: wmma.store.d.
__device__ __forceinline__ void wmma_store_d_f16(unsigned address, const unsigned (&d)[4], unsigned stride,
                                                 Site = Site::here()) {
  asm volatile("wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%0], {%1, %2, %3, %4}, %5;"
               :
               : "r"(address), "r"(d[0]), "r"(d[1]), "r"(d[2]), "r"(d[3]), "r"(stride)
               : "memory");
}

} // namespace fagen::device::ptx
