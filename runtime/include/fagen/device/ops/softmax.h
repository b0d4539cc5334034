// fagen: the online softmax on accumulator fragments (Milakov and Gimelshein, 2018; FlashAttention, Dao et al., 2022).
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scores s stay in raw units; the factor of exp2 is c = scale * log2(e), so that exp(scale (s - m)) is one fused
// multiply-add and one exp2. A row that has seen no visible key has the maximum -inf; with kGuard that counts as 0, so
// that -inf - -inf never arises; unmasked tiles need no guard.
#pragma once

#include <fagen/device/ops/terms.h>
#include <fagen/device/ptx/math.h>
#include <fagen/device/ptx/shared.h>
#include <fagen/device/ptx/shuffle.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/tile/fragment.h>

namespace fagen::device {

/// By how much a true maximum may exceed m, as a power of two: 2^8 times a sum of probabilities is far from any limit.
constexpr float kLazyBits = 8.0f;

template <int kRows> __device__ __forceinline__ void fill(RowValues<kRows> &rows, float value) {
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
    rows.value[slab][0] = rows.value[slab][1] = value;
}

/// -inf where visible(row, key) is false; (first_row, first_key) is the fragment's corner in the tensor.
template <int kRows, int kColumns, class Visible>
__device__ __forceinline__ void mask(Accumulator<kRows, kColumns> &s, int first_row, int first_key, Visible visible) {
  const int lane = ptx::recompute(ptx::thread_index()) % 32;
  const int row = ptx::recompute(first_row + lane / 4);
  const int key = first_key + lane % 4 * 2;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int tile = 0; tile < kColumns / 8; ++tile)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (!visible(row + 16 * slab + i / 2 * 8, key + 8 * tile + i % 2))
          s.value[slab][tile][i] = ptx::negative_infinity();
}

/// As mask, where row q sees the keys before end(q): one comparison with a constant for each score.
template <int kRows, int kColumns, class End>
__device__ __forceinline__ void mask_from(Accumulator<kRows, kColumns> &s, int first_row, int first_key, End end) {
  const int lane = ptx::recompute(ptx::thread_index()) % 32;
  const int row = ptx::recompute(first_row + lane / 4);
  const int key = first_key + lane % 4 * 2;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int seen = end(row + 16 * slab + 8 * half) - key;
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (8 * tile + i >= seen)
            s.value[slab][tile][2 * half + i] = ptx::negative_infinity();
    }
}

/// The first of kKeys keys from `first` on for which holds(key), which it does for all after it; first + kKeys where
/// it holds for none. Asks as many times for all.
template <int kKeys, class Holds> __device__ __forceinline__ int first_key(int first, Holds holds) {
  int key = first;
#pragma unroll
  for (int left = kKeys; left > 1; left -= left / 2)
    key += holds(key + left / 2 - 1) ? 0 : left / 2;
  return key + (holds(key) ? 0 : 1);
}

/// As mask, where row q sees the keys from begin(q) on and before end(q).
template <int kRows, int kColumns, class Begin, class End>
__device__ __forceinline__ void mask_range(Accumulator<kRows, kColumns> &s, int first_row, int first_key, Begin begin,
                                           End end) {
  const int lane = ptx::recompute(ptx::thread_index()) % 32;
  const int row = ptx::recompute(first_row + lane / 4);
  const int key = first_key + lane % 4 * 2;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int own_row = row + 16 * slab + 8 * half;
      const int hidden = begin(own_row) - key, seen = end(own_row) - key;
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile)
#pragma unroll
        for (int i = 0; i < 2; ++i)
          if (8 * tile + i < hidden || 8 * tile + i >= seen)
            s.value[slab][tile][2 * half + i] = ptx::negative_infinity();
    }
}

/// m_new = max(m, maximum of each row of s).
template <int kRows, int kColumns>
__device__ __forceinline__ void row_max(RowValues<kRows> &m_new, const Accumulator<kRows, kColumns> &s,
                                        const RowValues<kRows> &m, ptx::Site site = ptx::Site::here()) {
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = m.value[slab][half];
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile)
        largest = ptx::max(largest, ptx::max(s.value[slab][tile][2 * half], s.value[slab][tile][2 * half + 1]));
      largest = ptx::max(largest, ptx::shuffle_xor(largest, 1, site));
      m_new.value[slab][half] = ptx::max(largest, ptx::shuffle_xor(largest, 2, site));
    }
}

/// o and l from maximum m to m_new: both times exp2(c (m - m_new)); then m = m_new.
template <bool kGuard, int kRows, int kColumns>
__device__ __forceinline__ void rescale(Accumulator<kRows, kColumns> &o, RowValues<kRows> &l, RowValues<kRows> &m,
                                        const RowValues<kRows> &m_new, float c) {
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float factor = ptx::exp2(ptx::mul(m.value[slab][half] - finite_max<kGuard>(m_new.value[slab][half]), c));
      m.value[slab][half] = m_new.value[slab][half];
      l.value[slab][half] = ptx::mul(l.value[slab][half], factor);
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile) {
        o.value[slab][tile][2 * half] = ptx::mul(o.value[slab][tile][2 * half], factor);
        o.value[slab][tile][2 * half + 1] = ptx::mul(o.value[slab][tile][2 * half + 1], factor);
      }
    }
}

/// As rescale, but only when some row of the warp has grown by more than a factor of 2^kLazyBits; else m stays as it
/// is, and probabilities and sums are larger than with m_new by the same factor in every row (FlashAttention-4's idea).
template <bool kGuard, int kRows, int kColumns>
__device__ __forceinline__ void rescale_lazily(Accumulator<kRows, kColumns> &o, RowValues<kRows> &l,
                                               RowValues<kRows> &m, const RowValues<kRows> &m_new, float c,
                                               ptx::Site site = ptx::Site::here()) {
  bool has_grown = false;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      has_grown |= ptx::mul(m_new.value[slab][half] - m.value[slab][half], c) > kLazyBits;
  if (ptx::any(has_grown, site))
    rescale<kGuard>(o, l, m, m_new, c);
}

/// The half of rescale that does without o: alpha is what o is still to be multiplied by.
template <bool kGuard, int kRows>
__device__ __forceinline__ void rescale_rows(RowValues<kRows> &alpha, RowValues<kRows> &l, RowValues<kRows> &m,
                                             const RowValues<kRows> &m_new, float c) {
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float factor = ptx::exp2(ptx::mul(m.value[slab][half] - finite_max<kGuard>(m_new.value[slab][half]), c));
      alpha.value[slab][half] = factor;
      m.value[slab][half] = m_new.value[slab][half];
      l.value[slab][half] = ptx::mul(l.value[slab][half], factor);
    }
}

/// As rescale_rows, but only when some row of the warp has grown by more than a factor of 2^kLazyBits (rescale_lazily);
/// else alpha is 1.
template <bool kGuard, int kRows>
__device__ __forceinline__ void rescale_rows_lazily(RowValues<kRows> &alpha, RowValues<kRows> &l, RowValues<kRows> &m,
                                                    const RowValues<kRows> &m_new, float c,
                                                    ptx::Site site = ptx::Site::here()) {
  bool has_grown = false;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      has_grown |= ptx::mul(m_new.value[slab][half] - m.value[slab][half], c) > kLazyBits;
  fill(alpha, 1.0f);
  if (ptx::any(has_grown, site))
    rescale_rows<kGuard>(alpha, l, m, m_new, c);
}

/// The other half: o *= alpha.
template <int kRows, int kColumns>
__device__ __forceinline__ void rescale_output(Accumulator<kRows, kColumns> &o, const RowValues<kRows> &alpha) {
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile) {
        o.value[slab][tile][2 * half] = ptx::mul(o.value[slab][tile][2 * half], alpha.value[slab][half]);
        o.value[slab][tile][2 * half + 1] = ptx::mul(o.value[slab][tile][2 * half + 1], alpha.value[slab][half]);
      }
}

/// As rescale_output, but only when alpha is not 1 in some row of the warp.
template <int kRows, int kColumns>
__device__ __forceinline__ void rescale_output_lazily(Accumulator<kRows, kColumns> &o, const RowValues<kRows> &alpha,
                                                      ptx::Site site = ptx::Site::here()) {
  bool has_grown = false;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
    has_grown |= alpha.value[slab][0] != 1.0f || alpha.value[slab][1] != 1.0f;
  if (ptx::any(has_grown, site))
    rescale_output(o, alpha);
}

/// l += this thread's part of each row's sum; the quad's parts come together in total().
template <int kRows, int kColumns>
__device__ __forceinline__ void row_sum(RowValues<kRows> &l, const Accumulator<kRows, kColumns> &s) {
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile)
        l.value[slab][half] =
            ptx::add(l.value[slab][half], ptx::add(s.value[slab][tile][2 * half], s.value[slab][tile][2 * half + 1]));
}

/// l becomes the whole row's sum, over the quad.
template <int kRows> __device__ __forceinline__ void total(RowValues<kRows> &l, ptx::Site site = ptx::Site::here()) {
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = l.value[slab][half];
      sum = ptx::add(sum, ptx::shuffle_xor(sum, 1, site));
      l.value[slab][half] = ptx::add(sum, ptx::shuffle_xor(sum, 2, site));
    }
}

/// Probabilities rounded once to T, as the left operand of P V: the accumulator's layout is the operand's, so no lane
/// exchanges anything. Columns that s does not have are 0.
template <class T, int kRows, int kColumns, int kGiven>
__device__ __forceinline__ void convert(LeftOperand<T, kRows, kColumns> &p, const Accumulator<kRows, kGiven> &s) {
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int slice = 0; slice < kColumns / 16; ++slice)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (slice >= kGiven / 16) {
          p.value[slab][slice][i] = 0;
          continue;
        }
        const float(&pair)[4] = s.value[slab][2 * slice + i / 2];
        p.value[slab][slice][i] = ptx::round_pair<T>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]);
      }
}

/// 1 / sum, and 0 for a row whose keys were all masked.
__device__ __forceinline__ float inverse_sum(float sum) { return sum == 0.0f ? 0.0f : ptx::div(1.0f, sum); }

/// o /= l, l being the whole row's sum.
template <int kRows, int kColumns>
__device__ __forceinline__ void normalize(Accumulator<kRows, kColumns> &o, const RowValues<kRows> &l) {
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float inverse = inverse_sum(l.value[slab][half]);
#pragma unroll
      for (int tile = 0; tile < kColumns / 8; ++tile) {
        o.value[slab][tile][2 * half] = ptx::mul(o.value[slab][tile][2 * half], inverse);
        o.value[slab][tile][2 * half + 1] = ptx::mul(o.value[slab][tile][2 * half + 1], inverse);
      }
    }
}

constexpr float kLn2 = 0.693147180559945309f;
[[maybe_unused]] constexpr float kLog2E = 1.44269504088896341f;

/// Natural-log log-sum-exp of one row from its maximum, times scale, and sum; -inf when no key was visible.
__device__ __forceinline__ float log_sum_exp(float m, float l, float scale) {
  return l == 0.0f ? ptx::negative_infinity() : ptx::fma(m, scale, ptx::mul(kLn2, ptx::log2(l)));
}

} // namespace fagen::device
