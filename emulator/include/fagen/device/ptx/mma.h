// fagen: matrix instructions of one warp, in the emulator.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The sixteen products of an element are exact; they are added in f64 from the first to the last, then the accumulator
// is added, and the result is rounded once to f32.
#pragma once

#include <fagen/device/ptx/engine.h>
#include <fagen/device/ptx/math.h>
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

/// The sum is rounded to f32 first, and then to f16.
inline void mma_m16n8k16_f16_f16(unsigned (&d)[2], const unsigned (&a)[4], unsigned b0, unsigned b1,
                                 Site site = Site::here()) {
  auto half = [](unsigned bits) { return to_float(f16{static_cast<unsigned short>(bits & 0xffff)}); };
  float wide[4] = {half(d[0]), half(d[0] >> 16), half(d[1]), half(d[1] >> 16)};
  engine->multiply(wide, a, b0, b1, ElementType::kF16, site);
  d[0] = round_pair<f16>(wide[0], wide[1]);
  d[1] = round_pair<f16>(wide[2], wide[3]);
}

} // namespace fagen::device::ptx
