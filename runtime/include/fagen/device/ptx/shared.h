// fagen: shared memory by 32-bit address. PTX ISA, Data Movement: ld.shared, st.shared.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/site.h>

namespace fagen::device::ptx {

/// The CTA's dynamic shared memory, seen as `Storage`.
template <class Storage> __device__ __forceinline__ Storage &shared_storage() {
  extern __shared__ __align__(1024) unsigned char fagen_dynamic_shared[];
  return *reinterpret_cast<Storage *>(fagen_dynamic_shared);
}

/// Address of an object in shared memory within the shared window.
__device__ __forceinline__ unsigned shared_address(const void *object) {
  return static_cast<unsigned>(__cvta_generic_to_shared(object));
}

/// The same value, but unknown to the compiler: what is computed from it is computed where it is used and not kept in
/// registers across a loop. No instruction.
__device__ __forceinline__ unsigned recompute(unsigned value) {
  asm volatile("" : "+r"(value));
  return value;
}
__device__ __forceinline__ int recompute(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
__device__ __forceinline__ long long recompute(long long value) {
  asm volatile("" : "+l"(value));
  return value;
}
template <class T> __device__ __forceinline__ T *recompute(T *value) {
  asm volatile("" : "+l"(value));
  return value;
}

/// One element of 2 bytes.
__device__ __forceinline__ unsigned short ld_shared_u16(unsigned address, Site = Site::here()) {
  unsigned short value;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(value) : "r"(address) : "memory");
  return value;
}
/// Nothing where not `active`. Lanes that differ in it should all call: it is one instruction of the warp.
__device__ __forceinline__ void st_shared_u16(unsigned address, unsigned short value, Site = Site::here(),
                                              bool active = true) {
  if (active)
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(address), "h"(value) : "memory");
}

/// kWords (1, 2 or 4) consecutive words; the address is a multiple of 4 * kWords.
template <int kWords>
__device__ __forceinline__ void ld_shared(unsigned (&words)[kWords], unsigned address, Site = Site::here()) {
  static_assert(kWords == 1 || kWords == 2 || kWords == 4, "a shared load takes 4, 8 or 16 bytes");
  if constexpr (kWords == 1)
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(words[0]) : "r"(address) : "memory");
  else if constexpr (kWords == 2)
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "r"(address) : "memory");
  else
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                 : "r"(address)
                 : "memory");
}
template <int kWords>
__device__ __forceinline__ void st_shared(unsigned address, const unsigned (&words)[kWords], Site = Site::here()) {
  static_assert(kWords == 1 || kWords == 2 || kWords == 4, "a shared store takes 4, 8 or 16 bytes");
  if constexpr (kWords == 1)
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(words[0]) : "memory");
  else if constexpr (kWords == 2)
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(address), "r"(words[0]), "r"(words[1]) : "memory");
  else
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words[0]), "r"(words[1]), "r"(words[2]),
                 "r"(words[3])
                 : "memory");
}

/// One f32.
__device__ __forceinline__ float ld_shared_f32(unsigned address, Site = Site::here()) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}
/// Two consecutive f32; the address is a multiple of 8.
__device__ __forceinline__ void ld_shared_f32x2(float (&values)[2], unsigned address, Site = Site::here()) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(values[0]), "=f"(values[1]) : "r"(address) : "memory");
}
__device__ __forceinline__ void st_shared_f32(unsigned address, float value, Site = Site::here(), bool active = true) {
  if (active)
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}
/// Two consecutive f32; the address is a multiple of 8.
__device__ __forceinline__ void st_shared_f32x2(unsigned address, const float (&values)[2], Site = Site::here()) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(values[0]), "f"(values[1]) : "memory");
}

} // namespace fagen::device::ptx
