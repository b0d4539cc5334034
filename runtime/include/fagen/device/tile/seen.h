// fagen: which key tiles rows may see, as the bits of a word: a bit for each run of as many tiles.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All roles of a kernel judge the tiles by the same function of parameters and inputs, so they visit the same ones.
#pragma once

#include <fagen/device/form.h>
#include <fagen/device/ptx/shuffle.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/tile/integer.h>

namespace fagen::device {

using TileBits = unsigned long long;
constexpr int kTileBits = 64;

/// The exponent of the smallest power of two that is no less than x.
__device__ __forceinline__ int ceil_log2(int x) {
  int log = 0;
  while (log < 30 && 1 << log < x)
    ++log;
  return log;
}

/// How many bits are 1.
__device__ __forceinline__ int ones(unsigned word) {
  word -= word >> 1 & 0x55555555u;
  word = (word & 0x33333333u) + (word >> 2 & 0x33333333u);
  word = (word + (word >> 4)) & 0x0f0f0f0fu;
  return static_cast<int>(word * 0x01010101u >> 24);
}
__device__ __forceinline__ int ones(TileBits word) {
  return ones(static_cast<unsigned>(word)) + ones(static_cast<unsigned>(word >> 32));
}

/// The place of the n-th 1, counted from 0; there are more than n.
__device__ __forceinline__ int nth_one(TileBits word, int n) {
  int place = 0;
#pragma unroll
  for (int width = 32; width != 0; width /= 2) {
    const int below = ones(static_cast<unsigned>(word >> place) & (0xffffffffu >> (32 - width)));
    if (n >= below) {
      n -= below;
      place += width;
    }
  }
  return place;
}

/// Runs of key tiles, a bit each; a run has 2^log tiles, so that there are no more than kTileBits.
struct SeenTiles {
  TileBits partial, whole; ///< what some row may see, but not every row whole; what every row sees whole
  int first, log;          ///< the first tile that was judged
};

__device__ __forceinline__ int seen_tiles(const SeenTiles &seen) {
  return (ones(seen.partial) + ones(seen.whole)) << seen.log;
}
__device__ __forceinline__ int whole_tiles(const SeenTiles &seen) { return ones(seen.whole) << seen.log; }

/// The number of the n-th tile, those that rows see in part first.
__device__ __forceinline__ int tile_of(const SeenTiles &seen, int n) {
  const int run = n >> seen.log, partial = ones(seen.partial);
  const int place = run < partial ? nth_one(seen.partial, run) : nth_one(seen.whole, run - partial);
  return seen.first + (place << seen.log) + (n & ((1 << seen.log) - 1));
}

/// Judges `tiles` key tiles from `first` on: is_seen and is_whole are asked for the first and the last key of a run.
/// The lanes of a warp judge two runs each. Without tiles none need be there.
template <class IsSeen, class IsWhole>
__device__ __forceinline__ SeenTiles judge_tiles(int first, int tiles, int tile_keys, IsSeen is_seen, IsWhole is_whole,
                                                 ptx::Site site = ptx::Site::here()) {
  SeenTiles seen{0, 0, first, ceil_log2((tiles + kTileBits - 1) / kTileBits)};
  if (tiles <= 0)
    return seen;
  const int lane = ptx::thread_index() % 32;
  bool is_some[2], is_all[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int begin = (32 * half + lane) << seen.log;
    const int low = (first + begin) * tile_keys, high = low + (tile_keys << seen.log) - 1;
    is_some[half] = begin < tiles && is_seen(low, high);
    is_all[half] = is_some[half] && is_whole(low, high);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    unsigned partial = static_cast<unsigned>(is_some[half] && !is_all[half]) << lane,
             whole = static_cast<unsigned>(is_all[half]) << lane;
#pragma unroll
    for (int mask = 1; mask < 32; mask *= 2) {
      partial |= ptx::shuffle_xor(partial, mask, site);
      whole |= ptx::shuffle_xor(whole, mask, site);
    }
    seen.partial |= TileBits{partial} << 32 * half;
    seen.whole |= TileBits{whole} << 32 * half;
  }
  return seen;
}

/// What the first lane of the warp has; the others have 0.
__device__ __forceinline__ int of_first_lane(int value, ptx::Site site = ptx::Site::here()) {
  unsigned word = static_cast<unsigned>(value);
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2)
    word |= ptx::shuffle_xor(word, mask, site);
  return static_cast<int>(word);
}

/// What elements of a tensor of integers may be.
template <class T> struct ElementRange {
  static constexpr int kLeast = -0x7fffffff - 1, kLargest = 0x7fffffff;
};
template <> struct ElementRange<unsigned char> {
  static constexpr int kLeast = 0, kLargest = 255;
};
template <> struct ElementRange<bit> {
  static constexpr int kLeast = 0, kLargest = 1;
};

/// So many elements are read to judge a tile, no more.
constexpr int kMostJudged = 16;

/// What f makes of the elements with indices from low to high, beginning with what the type allows at the other end;
/// `unknown` where these are many.
template <class T, int kRank, class F>
__device__ __forceinline__ int over_box(const Tensor<T, kRank> &tensor, const int (&low)[kRank],
                                        const int (&high)[kRank], int neutral, int unknown, F f) {
  int count = 1, at[kRank];
#pragma unroll
  for (int d = 0; d < kRank; ++d) {
    count = min(count * (min(high[d] - low[d], kMostJudged) + 1), kMostJudged + 1);
    at[d] = low[d];
  }
  if (count > kMostJudged)
    return unknown;
  int found = neutral;
  for (int n = 0; n < count; ++n) {
    found = f(found, tensor.at(at));
    bool carries = true;
#pragma unroll
    for (int d = kRank - 1; d >= 0; --d) {
      at[d] = !carries ? at[d] : at[d] < high[d] ? at[d] + 1 : low[d];
      carries = carries && at[d] == low[d];
    }
  }
  return found;
}

/// The least of the elements with indices from low to high, or less.
template <class T, int kRank>
__device__ __forceinline__ int lowest(const Tensor<T, kRank> &tensor, const int (&low)[kRank],
                                      const int (&high)[kRank]) {
  using Range = ElementRange<T>;
  return over_box(tensor, low, high, Range::kLargest, Range::kLeast, [](int a, int b) { return min(a, b); });
}

/// The largest of them, or more.
template <class T, int kRank>
__device__ __forceinline__ int highest(const Tensor<T, kRank> &tensor, const int (&low)[kRank],
                                       const int (&high)[kRank]) {
  using Range = ElementRange<T>;
  return over_box(tensor, low, high, Range::kLeast, Range::kLargest, [](int a, int b) { return max(a, b); });
}

} // namespace fagen::device
