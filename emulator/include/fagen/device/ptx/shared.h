// fagen: shared memory by 32-bit address, in the emulator: an address is the offset from the CTA's base.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

__attribute__((const, noinline)) inline void *shared_base() { return engine->shared_base(); }

template <class Storage> inline Storage &shared_storage() { return *static_cast<Storage *>(shared_base()); }

inline unsigned shared_address(const void *object) {
  return static_cast<unsigned>(static_cast<const char *>(object) - static_cast<const char *>(shared_base()));
}

inline unsigned recompute(unsigned value) { return value; }
inline int recompute(int value) { return value; }
inline long long recompute(long long value) { return value; }
template <class T> inline T *recompute(T *value) { return value; }

inline unsigned short ld_shared_u16(unsigned address, Site site = Site::here()) {
  unsigned short value;
  engine->load_shared(&value, address, sizeof(value), site);
  return value;
}
inline void st_shared_u16(unsigned address, unsigned short value, Site site = Site::here(), bool active = true) {
  engine->store_shared(address, active ? &value : nullptr, sizeof(value), site);
}

template <int kWords> inline void ld_shared(unsigned (&words)[kWords], unsigned address, Site site = Site::here()) {
  static_assert(kWords == 1 || kWords == 2 || kWords == 4, "a shared load takes 4, 8 or 16 bytes");
  engine->load_shared(words, address, sizeof(words), site);
}
template <int kWords>
inline void st_shared(unsigned address, const unsigned (&words)[kWords], Site site = Site::here()) {
  static_assert(kWords == 1 || kWords == 2 || kWords == 4, "a shared store takes 4, 8 or 16 bytes");
  engine->store_shared(address, words, sizeof(words), site);
}

inline float ld_shared_f32(unsigned address, Site site = Site::here()) {
  float value;
  engine->load_shared(&value, address, sizeof(value), site);
  return value;
}
inline void ld_shared_f32x2(float (&values)[2], unsigned address, Site site = Site::here()) {
  engine->load_shared(values, address, sizeof(values), site);
}
inline void st_shared_f32(unsigned address, float value, Site site = Site::here(), bool active = true) {
  engine->store_shared(address, active ? &value : nullptr, sizeof(value), site);
}
inline void st_shared_f32x2(unsigned address, const float (&values)[2], Site site = Site::here()) {
  engine->store_shared(address, values, sizeof(values), site);
}

} // namespace fagen::device::ptx
