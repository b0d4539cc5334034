// fagen: what tiles of query rows see of key tiles, element by element: a launch of its own, before the one that visits
// them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A mask that reads an element for each query and key tells of a tile only by all of them. This launch reads each once,
// by runs of keys, and no more of a tile once some are seen and some not. Where elements along its rows and its keys
// tell of a tile, as numbers of documents do, these are read, 128 where the tile has 16384. What it finds lies in the
// workspace, a number for each key tile of each tile of query rows, and is judged as a map of blocks is (tile/seen.h).
// Where a mask is the same for all heads, or batches, the map has one of them.
#pragma once

#include <fagen/device/form.h>
#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/shuffle.h>
#include <fagen/device/tile/cta.h>
#include <fagen/device/tile/key_run.h>
#include <fagen/device/tile/layout.h>
#include <fagen/device/tile/seen.h>

namespace fagen::device {

/// What the rows see of a key tile.
enum Sight : int { kNone = 0, kPart = 1, kWhole = 2 };

/// The map lies so many bytes after the begin of the workspace.
__device__ __forceinline__ int *sights_of(const AttentionParams &params, long long bytes) {
  return reinterpret_cast<int *>(static_cast<char *>(params.workspace) + bytes);
}

/// How many of `count` batches, or heads, have masks of their own, where these differ in tensors with these strides
/// alone.
template <class... Strides> __device__ __forceinline__ int distinct(int count, Strides... strides) {
  return ((strides == 0) && ...) ? min(count, 1) : count;
}

/// How many there are of what the map is for; key tiles lie side by side. Where there is one batch, or one head, it is
/// that of all.
struct SightMap {
  int batches, heads, row_tiles, key_tiles;

  __device__ __forceinline__ long long size() const {
    return static_cast<long long>(batches) * heads * row_tiles * key_tiles;
  }
  /// As a tensor that lies so many bytes after the begin of the workspace.
  __device__ __forceinline__ Tensor<int, 4> tensor(const AttentionParams &params, long long bytes) const {
    const long long of_head = static_cast<long long>(row_tiles) * key_tiles;
    return {sights_of(params, bytes), {batches > 1 ? heads * of_head : 0, heads > 1 ? of_head : 0, key_tiles, 1}};
  }
};

/// A CtaPlace and a key tile.
struct KeyTilePlace {
  int batch, head, kv_head;
  int row_begin; ///< first query row
  int key_begin; ///< first key
};

/// Where the entry of the map with this number belongs.
template <int kTileRows, int kTileKeys, Rows kRows = Rows::kOfHead>
__device__ __forceinline__ KeyTilePlace locate_key_tile(const AttentionParams &params, const SightMap &map,
                                                        long long number) {
  const long long of_rows = number / map.key_tiles, of_head = of_rows / map.row_tiles;
  const int batch = static_cast<int>(of_head / map.heads), head = static_cast<int>(of_head % map.heads);
  const int row_begin = static_cast<int>(of_rows % map.row_tiles) * kTileRows;
  const int key_begin = static_cast<int>(number % map.key_tiles) * kTileKeys;
  if constexpr (kRows == Rows::kOfGroup)
    return {batch, head * params.heads_per_kv, head, row_begin, key_begin};
  else
    return {batch, head, head / params.heads_per_kv, row_begin, key_begin};
}

/// So many elements are read to judge a tile by a warp, no more.
constexpr int kMostByWarp = 1024;

/// As over_box (tile/seen.h), by all lanes of a warp: each takes every 32nd element.
template <class T, int kRank, class F>
__device__ __forceinline__ int over_box_by_warp(const Tensor<T, kRank> &tensor, const int (&low)[kRank],
                                                const int (&high)[kRank], int neutral, int unknown, F f,
                                                ptx::Site site) {
  int count = 1, extent[kRank], at[kRank];
#pragma unroll
  for (int d = 0; d < kRank; ++d) {
    extent[d] = high[d] - low[d] + 1;
    count = min(count * min(extent[d], kMostByWarp + 1), kMostByWarp + 1);
  }
  if (count > kMostByWarp)
    return unknown;
  int found = neutral;
  for (int n = ptx::lane_index(); n < count; n += 32) {
    int rest = n;
#pragma unroll
    for (int d = kRank - 1; d >= 0; --d) {
      const int above = rest < extent[d] ? 0 : rest / extent[d]; // most boxes are one row of elements
      at[d] = low[d] + rest - above * extent[d];
      rest = above;
    }
    found = f(found, tensor.at(at));
  }
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2)
    found = f(found, static_cast<int>(ptx::shuffle_xor(static_cast<unsigned>(found), mask, site)));
  return found;
}

/// The least of the elements with indices from low to high, or less, by a warp.
template <class T, int kRank>
__device__ __forceinline__ int lowest_by_warp(const Tensor<T, kRank> &tensor, const int (&low)[kRank],
                                              const int (&high)[kRank], ptx::Site site = ptx::Site::here()) {
  using Range = ElementRange<T>;
  const auto least = [](int a, int b) { return min(a, b); };
  return over_box_by_warp(tensor, low, high, Range::kLargest, Range::kLeast, least, site);
}

/// The largest of them, or more.
template <class T, int kRank>
__device__ __forceinline__ int highest_by_warp(const Tensor<T, kRank> &tensor, const int (&low)[kRank],
                                               const int (&high)[kRank], ptx::Site site = ptx::Site::here()) {
  using Range = ElementRange<T>;
  const auto largest = [](int a, int b) { return max(a, b); };
  return over_box_by_warp(tensor, low, high, Range::kLeast, Range::kLargest, largest, site);
}

/// What the tile's rows below `limit` see of its keys, of which seen_of tells a run's (tile/key_run.h). A lane asks for
/// several runs together. What it asks for twice, where rows end, changes nothing.
template <int kTileRows, int kTileKeys, class SeenOf>
__device__ __forceinline__ Sight sight_of(int row_begin, int limit, int key_begin, SeenOf seen_of,
                                          ptx::Site site = ptx::Site::here()) {
  static_assert(kTileKeys % kRunKeys == 0, "a tile has whole runs of keys");
  constexpr int kRuns = kTileKeys / kRunKeys, kTogether = 4;
  const int runs = min(kTileRows, limit - row_begin) * kRuns;
  unsigned some = 0, every = kWholeRun;
  for (int begin = 0; begin < runs; begin += 32 * kTogether) {
    unsigned seen[kTogether];
    see_runs(
        seen,
        [&](int i) {
          const int run = min(begin + 32 * i + ptx::lane_index(), runs - 1);
          return RunPlace{row_begin + run / kRuns, key_begin + run % kRuns * kRunKeys};
        },
        seen_of);
#pragma unroll
    for (int i = 0; i < kTogether; ++i) {
      some |= seen[i];
      every &= seen[i];
    }
    const bool sees = ptx::any(some != 0, site), misses = ptx::any(every != kWholeRun, site);
    if (sees && misses)
      return kPart;
  }
  return ptx::any(some != 0, site) ? kWhole : kNone;
}

/// Every warp of the launch takes entries of the map in turn. `sight_at` is asked by all its lanes.
template <class SightAt>
__device__ __forceinline__ void classify_tiles(const AttentionParams &params, const SightMap &map, long long bytes,
                                               SightAt sight_at, ptx::Site site = ptx::Site::here()) {
  int *const sights = sights_of(params, bytes);
  const long long warps = static_cast<long long>(ptx::cta_count()) * kClassifyWarps;
  long long number = static_cast<long long>(ptx::cta_index()) * kClassifyWarps + ptx::warp_index();
  for (; number < map.size(); number += warps) {
    const Sight sight = sight_at(number);
    if (ptx::lane_index() == 0)
      ptx::st_global_u32(sights + number, static_cast<unsigned>(sight), site);
  }
}

} // namespace fagen::device
