// fagen: products of a warp group, in the emulator: N is twice the size of `d`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/engine.h>
#include <fagen/device/ptx/matrix_descriptor.h>

namespace fagen::device::ptx {

template <Major kA, Major kB, int kCount>
inline void wgmma_emulated(ElementType type, float (&d)[kCount], const unsigned *a, MatrixDescriptor shared_a,
                           MatrixDescriptor b, bool accumulate, Site site) {
  static_assert(kCount % 4 == 0 && kCount >= 4 && kCount <= 128, "N is a multiple of 8 from 8 to 256");
  const WgmmaForm form = {type, kCount, accumulate, kA == Major::kMn, kB == Major::kMn};
  engine->wgmma(d, a, shared_a.bits, b.bits, form, site);
}

template <Major kA, Major kB, int kCount>
inline void wgmma_f32_f16(float (&d)[kCount], MatrixDescriptor a, MatrixDescriptor b, bool accumulate,
                          Site site = Site::here()) {
  wgmma_emulated<kA, kB>(ElementType::kF16, d, nullptr, a, b, accumulate, site);
}
template <Major kB, int kCount>
inline void wgmma_f32_f16(float (&d)[kCount], const unsigned (&a)[4], MatrixDescriptor b, bool accumulate,
                          Site site = Site::here()) {
  wgmma_emulated<Major::kK, kB>(ElementType::kF16, d, a, {}, b, accumulate, site);
}

template <Major kA, Major kB, int kCount>
inline void wgmma_f32_bf16(float (&d)[kCount], MatrixDescriptor a, MatrixDescriptor b, bool accumulate,
                           Site site = Site::here()) {
  wgmma_emulated<kA, kB>(ElementType::kBf16, d, nullptr, a, b, accumulate, site);
}
template <Major kB, int kCount>
inline void wgmma_f32_bf16(float (&d)[kCount], const unsigned (&a)[4], MatrixDescriptor b, bool accumulate,
                           Site site = Site::here()) {
  wgmma_emulated<Major::kK, kB>(ElementType::kBf16, d, a, {}, b, accumulate, site);
}

} // namespace fagen::device::ptx
