// fagen: matrix products of one warp by wmma m16n16k16, in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fragments are laid out as emulator/ptx/Wmma.cpp says, which is no GPU's layout. The sixteen products of an
// element are exact; they are added in f64 from the first to the last, then the accumulator is added, and the result is
// rounded once to the accumulator's type.
#pragma once

#include <fagen/device/ptx/engine.h>

namespace fagen::device::ptx {

inline void wmma_load_a_f16(unsigned (&a)[8], unsigned address, unsigned stride, Site site = Site::here()) {
  engine->wmma_load(a, 8, false, address, stride, site);
}
inline void wmma_load_b_f16_row(unsigned (&b)[8], unsigned address, unsigned stride, Site site = Site::here()) {
  engine->wmma_load(b, 8, false, address, stride, site);
}
inline void wmma_load_b_f16_col(unsigned (&b)[8], unsigned address, unsigned stride, Site site = Site::here()) {
  engine->wmma_load(b, 8, true, address, stride, site);
}
inline void wmma_load_a_bf16(unsigned (&a)[4], unsigned address, unsigned stride, Site site = Site::here()) {
  engine->wmma_load(a, 4, false, address, stride, site);
}
inline void wmma_load_b_bf16_row(unsigned (&b)[4], unsigned address, unsigned stride, Site site = Site::here()) {
  engine->wmma_load(b, 4, false, address, stride, site);
}
inline void wmma_load_b_bf16_col(unsigned (&b)[4], unsigned address, unsigned stride, Site site = Site::here()) {
  engine->wmma_load(b, 4, true, address, stride, site);
}

inline void wmma_mma_f32_f16_row(float (&d)[8], const unsigned (&a)[8], const unsigned (&b)[8],
                                 Site site = Site::here()) {
  engine->wmma_multiply(d, a, b, {ElementType::kF16, false, false}, site);
}
inline void wmma_mma_f32_f16_col(float (&d)[8], const unsigned (&a)[8], const unsigned (&b)[8],
                                 Site site = Site::here()) {
  engine->wmma_multiply(d, a, b, {ElementType::kF16, false, true}, site);
}
inline void wmma_mma_f32_bf16_row(float (&d)[8], const unsigned (&a)[4], const unsigned (&b)[4],
                                  Site site = Site::here()) {
  engine->wmma_multiply(d, a, b, {ElementType::kBf16, false, false}, site);
}
inline void wmma_mma_f32_bf16_col(float (&d)[8], const unsigned (&a)[4], const unsigned (&b)[4],
                                  Site site = Site::here()) {
  engine->wmma_multiply(d, a, b, {ElementType::kBf16, false, true}, site);
}
inline void wmma_mma_f16_f16_row(unsigned (&d)[4], const unsigned (&a)[8], const unsigned (&b)[8],
                                 Site site = Site::here()) {
  engine->wmma_multiply(d, a, b, {ElementType::kF16, true, false}, site);
}
inline void wmma_mma_f16_f16_col(unsigned (&d)[4], const unsigned (&a)[8], const unsigned (&b)[8],
                                 Site site = Site::here()) {
  engine->wmma_multiply(d, a, b, {ElementType::kF16, true, true}, site);
}

inline void wmma_store_d_f32(unsigned address, const float (&d)[8], unsigned stride, Site site = Site::here()) {
  engine->wmma_store(address, d, false, stride, site);
}
inline void wmma_store_d_f16(unsigned address, const unsigned (&d)[4], unsigned stride, Site site = Site::here()) {
  engine->wmma_store(address, d, true, stride, site);
}

} // namespace fagen::device::ptx
