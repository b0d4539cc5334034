// fagen: products of bytes of a warp group, in the emulator: N is twice the size of `d`.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ptx/wgmma.h>

namespace fagen::device::ptx {

template <int kCount>
inline void wgmma_f32_e4m3(float (&d)[kCount], MatrixDescriptor a, MatrixDescriptor b, bool accumulate,
                           Site site = Site::here()) {
  wgmma_emulated<Major::kK, Major::kK>(ElementType::kE4m3, d, nullptr, a, b, accumulate, site);
}
template <int kCount>
inline void wgmma_f32_e4m3(float (&d)[kCount], const unsigned (&a)[4], MatrixDescriptor b, bool accumulate,
                           Site site = Site::here()) {
  wgmma_emulated<Major::kK, Major::kK>(ElementType::kE4m3, d, a, {}, b, accumulate, site);
}

} // namespace fagen::device::ptx
