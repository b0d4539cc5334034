// fagen: global memory. PTX ISA, Data Movement: ld.global.nc (inputs, constant during a launch), ld.global, st.global;
// atom.inc. Parallel Synchronization: fence.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/site.h>

namespace fagen::device::ptx {

// One element of an input, or 0 where the lane is not active: no branch, so that loads side by side do not wait for
// each other.

__device__ __forceinline__ unsigned char ld_global_u8(const void *source, Site = Site::here(), bool active = true) {
  unsigned short value;
  asm("{\n .reg .pred p;\n setp.ne.u32 p, %2, 0;\n mov.u16 %0, 0;\n @p ld.global.nc.u8 %0, [%1];\n}"
      : "=&h"(value)
      : "l"(source), "r"(static_cast<unsigned>(active)));
  return static_cast<unsigned char>(value);
}
__device__ __forceinline__ unsigned short ld_global_u16(const void *source, Site = Site::here(), bool active = true) {
  unsigned short value;
  asm("{\n .reg .pred p;\n setp.ne.u32 p, %2, 0;\n mov.u16 %0, 0;\n @p ld.global.nc.u16 %0, [%1];\n}"
      : "=&h"(value)
      : "l"(source), "r"(static_cast<unsigned>(active)));
  return value;
}
__device__ __forceinline__ unsigned ld_global_u32(const void *source, Site = Site::here(), bool active = true) {
  unsigned value;
  asm("{\n .reg .pred p;\n setp.ne.u32 p, %2, 0;\n mov.u32 %0, 0;\n @p ld.global.nc.u32 %0, [%1];\n}"
      : "=&r"(value)
      : "l"(source), "r"(static_cast<unsigned>(active)));
  return value;
}

/// Element `index` of a tensor of the argument, which a launch before may have written.
template <class T> __device__ __forceinline__ T element_of(const T *tensor, long long index, Site = Site::here()) {
  return tensor[index];
}

/// kWords (1, 2 or 4) consecutive words of an input; the address is a multiple of 4 * kWords.
template <int kWords>
__device__ __forceinline__ void ld_global(unsigned (&words)[kWords], const void *source, Site = Site::here()) {
  static_assert(kWords == 1 || kWords == 2 || kWords == 4, "a global load takes 4, 8 or 16 bytes");
  if constexpr (kWords == 1)
    asm("ld.global.nc.u32 %0, [%1];" : "=r"(words[0]) : "l"(source));
  else if constexpr (kWords == 2)
    asm("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(words[0]), "=r"(words[1]) : "l"(source));
  else
    asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
        : "l"(source));
}

__device__ __forceinline__ void st_global_u16(void *target, unsigned short value, Site = Site::here()) {
  asm volatile("st.global.u16 [%0], %1;" ::"l"(target), "h"(value) : "memory");
}
__device__ __forceinline__ void st_global_u32(void *target, unsigned value, Site = Site::here()) {
  asm volatile("st.global.u32 [%0], %1;" ::"l"(target), "r"(value) : "memory");
}
__device__ __forceinline__ void st_global_f32(float *target, float value, Site = Site::here()) {
  asm volatile("st.global.f32 [%0], %1;" ::"l"(target), "f"(value) : "memory");
}
/// Two or four consecutive f32 of memory that the kernel also writes; the address is a multiple of their size.
template <int kCount>
__device__ __forceinline__ void ld_global_f32(float (&values)[kCount], const float *source, Site = Site::here()) {
  static_assert(kCount == 2 || kCount == 4, "a global load takes 8 or 16 bytes");
  if constexpr (kCount == 2)
    asm volatile("ld.global.v2.f32 {%0, %1}, [%2];" : "=f"(values[0]), "=f"(values[1]) : "l"(source) : "memory");
  else
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
                 : "l"(source)
                 : "memory");
}
template <int kCount>
__device__ __forceinline__ void st_global_f32(float *target, const float (&values)[kCount], Site = Site::here()) {
  static_assert(kCount == 2 || kCount == 4, "a global store takes 8 or 16 bytes");
  if constexpr (kCount == 2)
    asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(target), "f"(values[0]), "f"(values[1]) : "memory");
  else
    asm volatile("st.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(target), "f"(values[0]), "f"(values[1]),
                 "f"(values[2]), "f"(values[3])
                 : "memory");
}
/// Four consecutive words; the address is a multiple of 16.
__device__ __forceinline__ void st_global(void *target, const unsigned (&words)[4], Site = Site::here()) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(target), "r"(words[0]), "r"(words[1]), "r"(words[2]),
               "r"(words[3])
               : "memory");
}

/// What the word held; then it is one more, and 0 after `last`. Relaxed: it orders nothing else.
__device__ __forceinline__ unsigned atomic_inc(unsigned *word, unsigned last, Site = Site::here()) {
  unsigned before;
  asm volatile("atom.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(word), "r"(last) : "memory");
  return before;
}

/// Before an atomic: whoever comes to that word later, and has a fence after, sees what the thread has seen so far.
__device__ __forceinline__ void fence_device(Site = Site::here()) { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

} // namespace fagen::device::ptx
