// fagen: terms of the online softmax on accumulator fragments: powers of two of scores less their row's maximum.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/ops/exp2.h>
#include <fagen/device/ptx/math.h>
#include <fagen/device/ptx/shuffle.h>
#include <fagen/device/tile/fragment.h>

namespace fagen::device {

/// The maximum as exp2 uses it.
template <bool kGuard> __device__ __forceinline__ float finite_max(float m) {
  return kGuard && m == ptx::negative_infinity() ? 0.0f : m;
}

/// Where a row of the warp has so large a maximum, or none, that c m is rounded by too much (kSmallMaximum), scores s
/// become differences s - m, and m becomes 0.
template <bool kGuard, int kRows, int kColumns>
__device__ __forceinline__ void subtract_large_maxima(Accumulator<kRows, kColumns> &s, RowValues<kRows> &m,
                                                      ptx::Site site = ptx::Site::here()) {
  bool is_large = false;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      is_large |= !(ptx::max(m.value[slab][half], -m.value[slab][half]) <= kSmallMaximum);
  if (!ptx::any(is_large, site))
    return;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float maximum = finite_max<kGuard>(m.value[slab][half]);
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i)
          s.value[slab][tile][i] = s.value[slab][tile][i] - maximum;
      m.value[slab][half] = 0.0f;
    }
}

/// s = exp2(c (s - m)), each kEvery-th of a thread's by polynomial; with 0 none. Differences that come first take an
/// instruction more a score; so they do where they must alone, and the other warps jump over a few lines.
template <bool kGuard, int kEvery = 0, Exponent kHow = Exponent::kFused, int kRows, int kColumns>
__device__ __forceinline__ void exp2(Accumulator<kRows, kColumns> &s, const RowValues<kRows> &m, float c,
                                     ptx::Site site = ptx::Site::here()) {
  if constexpr (kHow == Exponent::kDifference) {
    RowValues<kRows> reference = m;
    subtract_large_maxima<kGuard>(s, reference, site);
    return exp2<kGuard, kEvery>(s, reference, c);
  }
  TermExp2<kEvery> power;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const RowExponent<kHow> exponent(finite_max<kGuard>(m.value[slab][half]), c);
      power.fork();
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i)
          s.value[slab][tile][i] = power(exponent(s.value[slab][tile][i]));
    }
}

} // namespace fagen::device
