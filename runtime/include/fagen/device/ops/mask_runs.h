// fagen: masks of accumulator fragments that read an element for each query and key.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// In a fragment a thread has two keys of each eight (tile/fragment.h). Reading their elements would take a load for
// each, of bytes in as many lines of the cache as rows. So the four lanes of a quad, which share their rows, take runs
// of keys side by side in turn, and hand each other what the rows see of them.
#pragma once

#include <fagen/device/ptx/math.h>
#include <fagen/device/ptx/shuffle.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/tile/fragment.h>
#include <fagen/device/tile/key_run.h>

namespace fagen::device {

/// The word of each lane of the quad.
struct QuadWords {
  unsigned of_lane[4];
};
__device__ __forceinline__ QuadWords words_of_quad(unsigned own, int lane, ptx::Site site) {
  const unsigned other = ptx::shuffle_xor(own, 1, site);
  const unsigned even = lane & 1 ? other : own, odd = lane & 1 ? own : other;
  const unsigned even_beyond = ptx::shuffle_xor(even, 2, site), odd_beyond = ptx::shuffle_xor(odd, 2, site);
  if (lane & 2)
    return {{even_beyond, odd_beyond, even, odd}};
  return {{even, odd, even_beyond, odd_beyond}};
}

/// What the rows of a fragment see of the runs that the lane takes: of rows g and g + 8 of each slab, two runs in a
/// word.
template <int kRows, int kColumns> struct SeenKeys {
  static constexpr int kRuns = kColumns / kRunKeys;
  unsigned words[kRows / 16][(kRuns + 7) / 8][2];
};

/// By seen_of, which tells what a row sees of a run (tile/key_run.h). Nothing of the scores is asked for: a product may
/// still be under way.
template <int kRows, int kColumns, class SeenOf>
__device__ __forceinline__ SeenKeys<kRows, kColumns> seen_keys(int first_row, int first_key, SeenOf seen_of) {
  using Seen = SeenKeys<kRows, kColumns>;
  constexpr int kOfRow = Seen::kRuns > 4 ? 2 : 1; // so many a lane takes of a row together
  const int lane = ptx::recompute(ptx::thread_index()) % 32;
  const int row = ptx::recompute(first_row + lane / 4);
  Seen seen;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int first = 0; first < Seen::kRuns; first += 8) {
      unsigned runs[2 * kOfRow];
      see_runs(
          runs,
          [&](int i) {
            const int run = min(first + i % kOfRow * 4 + lane % 4, Seen::kRuns - 1);
            return RunPlace{row + 16 * slab + i / kOfRow * 8, first_key + run * kRunKeys};
          },
          seen_of);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const unsigned beyond = kOfRow == 2 ? runs[half * kOfRow + kOfRow - 1] << kRunKeys : 0;
        seen.words[slab][first / 8][half] = runs[half * kOfRow] | beyond;
      }
    }
  return seen;
}

/// -inf where the row does not see the key.
template <int kRows, int kColumns>
__device__ __forceinline__ void hide_unseen(Accumulator<kRows, kColumns> &s, const SeenKeys<kRows, kColumns> &seen,
                                            ptx::Site site = ptx::Site::here()) {
  constexpr int kRuns = SeenKeys<kRows, kColumns>::kRuns;
  const int lane = ptx::recompute(ptx::thread_index()) % 32;
#pragma unroll
  for (int slab = 0; slab < kRows / 16; ++slab)
#pragma unroll
    for (int first = 0; first < kRuns; first += 8)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const QuadWords quad = words_of_quad(seen.words[slab][first / 8][half], lane, site);
#pragma unroll
        for (int tile = 2 * first; tile < 2 * min(first + 8, kRuns); ++tile) {
          const int run = tile / 2 - first;
          const unsigned pairs = quad.of_lane[run % 4] >> lane % 4 * 2; // this lane has the first two keys of eight
#pragma unroll
          for (int i = 0; i < 2; ++i)
            if ((pairs >> (run / 4 * kRunKeys + tile % 2 * 8 + i) & 1u) == 0)
              s.value[slab][tile][2 * half + i] = ptx::negative_infinity();
        }
      }
}

template <int kRows, int kColumns, class SeenOf>
__device__ __forceinline__ void mask_by_runs(Accumulator<kRows, kColumns> &s, int first_row, int first_key,
                                             SeenOf seen_of, ptx::Site site = ptx::Site::here()) {
  hide_unseen(s, seen_keys<kRows, kColumns>(first_row, first_key, seen_of), site);
}

} // namespace fagen::device
