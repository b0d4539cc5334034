// fagen: matrix instructions of one warp, in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sixteen products of an element are exact; they are added in f64 from the first to the last, then the accumulator
// is added, and the result is rounded once to f32.
#pragma once

#include <fagen/device/ptx/engine.h>
#include <fagen/device/types.h>

namespace fagen::device::ptx {

inline void mma_m16n8k16_f32_f16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                 Site site = Site::here()) {
  engine->multiply(d, a, b0, b1, ElementType::kF16, site);
}

inline void mma_m16n8k16_f32_bf16(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                  Site site = Site::here()) {
  engine->multiply(d, a, b0, b1, ElementType::kBf16, site);
}

} // namespace fagen::device::ptx
