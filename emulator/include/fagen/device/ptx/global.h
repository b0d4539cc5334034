// fagen: global memory, in the emulator: host memory inside the buffers of the launch.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

template <class T> inline T ld_global_element(const void *source, Site site, bool active) {
  T value = 0;
  if (active)
    engine->load_global(&value, source, sizeof(value), site);
  return value;
}
inline unsigned char ld_global_u8(const void *source, Site site = Site::here(), bool active = true) {
  return ld_global_element<unsigned char>(source, site, active);
}
inline unsigned short ld_global_u16(const void *source, Site site = Site::here(), bool active = true) {
  return ld_global_element<unsigned short>(source, site, active);
}
inline unsigned ld_global_u32(const void *source, Site site = Site::here(), bool active = true) {
  return ld_global_element<unsigned>(source, site, active);
}

/// Element `index` of a tensor of the argument: an index that it does not have is a finding.
template <class T> inline T element_of(const T *tensor, long long index, Site site = Site::here()) {
  T value;
  engine->load_element(&value, tensor, index, sizeof(value), site);
  return value;
}

template <int kWords> inline void ld_global(unsigned (&words)[kWords], const void *source, Site site = Site::here()) {
  static_assert(kWords == 1 || kWords == 2 || kWords == 4, "a global load takes 4, 8 or 16 bytes");
  engine->load_global(words, source, sizeof(words), site);
}

inline void st_global_u16(void *target, unsigned short value, Site site = Site::here()) {
  engine->store_global(target, &value, sizeof(value), site);
}
inline void st_global_u32(void *target, unsigned value, Site site = Site::here()) {
  engine->store_global(target, &value, sizeof(value), site);
}
inline void st_global_f32(float *target, float value, Site site = Site::here()) {
  engine->store_global(target, &value, sizeof(value), site);
}
template <int kCount>
inline void ld_global_f32(float (&values)[kCount], const float *source, Site site = Site::here()) {
  static_assert(kCount == 2 || kCount == 4, "a global load takes 8 or 16 bytes");
  engine->load_global(values, source, sizeof(values), site);
}
template <int kCount>
inline void st_global_f32(float *target, const float (&values)[kCount], Site site = Site::here()) {
  static_assert(kCount == 2 || kCount == 4, "a global store takes 8 or 16 bytes");
  engine->store_global(target, values, sizeof(values), site);
}
inline void st_global(void *target, const unsigned (&words)[4], Site site = Site::here()) {
  engine->store_global(target, words, sizeof(words), site);
}

inline unsigned atomic_inc(unsigned *word, unsigned last, Site site = Site::here()) {
  return engine->atomic_inc(word, last, site);
}
inline void fence_device(Site site = Site::here()) { engine->fence_device(site); }

} // namespace fagen::device::ptx
