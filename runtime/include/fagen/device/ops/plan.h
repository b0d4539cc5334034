// fagen: the tiles of sequences that lie one after the other: a launch of its own, before the one that works on them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each tile is up to kTileRows rows of one sequence, or of nobody. Tiles stand in the order of their rows, so that tile
// i has rows rows[i] to rows[i + 1], whatever the offsets hold: those that decrease count as the largest before them,
// and none leads beyond the tensor. Every warp finds all tiles, 128 sequences at a time, and writes its share of each
// sequence's: nobody waits for another.
//
// Tiles that visit many keys are to be worked on first, so that CTAs that draw them end together. They are ordered by
// classes, each of up to twice as many key tiles as the one after it; neighbours of a class are neighbours of a
// sequence, and share its keys in L2.
#pragma once

#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/shuffle.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/tile/integer.h>

namespace fagen::device {

/// What a launch knows of its sequences: sequence i has rows rows[i] to rows[i + 1] of Q, and keys[i] to keys[i + 1] of
/// K and V. Of these it uses the first used_rows[i] and used_keys[i], where that is asked for.
struct Sequences {
  const unsigned *rows, *keys, *used_rows, *used_keys;
  int count, total_rows, total_keys;
  bool uses_rows, uses_keys;
};

constexpr int kTileClasses = 6; ///< tiles of up to 1, 2, 4, 8, 16 and of more key tiles

/// Tiles of rows one after the other, of a sequence or of nobody.
struct TileRun {
  int begin = 0, end = 0; ///< rows
  int first_key = 0, keys = 0;
  int seen = 0; ///< number of the last key that row `begin` sees; each next one sees a key more
  int sequence = 0;

  template <int kTileRows> __device__ __forceinline__ int tiles() const { return ceil_div(end - begin, kTileRows); }
  /// How many of the tiles, the first ones, visit at most `keys_at_most` keys.
  template <int kTileRows, bool kCausal> __device__ __forceinline__ int shorter(int keys_at_most) const {
    if (keys <= keys_at_most)
      return tiles<kTileRows>();
    const int room = keys_at_most - seen; // rows that see no more
    return kCausal && room > 0 ? min(room / kTileRows, tiles<kTileRows>()) : 0;
  }
};

/// What it finds. Of tile order[i], i below *count, words[4 * order[i]] has the first key, how many keys there are, and
/// the number of the last key that the tile's first row sees under a causal mask, where its sequence's last row sees
/// the last key, and the number of its sequence.
struct TilePlan {
  unsigned *rows; ///< slots + 1; those after the last tile are the number of all rows
  int *words;     ///< [slots, 4]
  unsigned *order, *count;
  int slots;
};

/// The part of the warp's values in lanes before this one, and that of all lanes.
struct LaneScan {
  int before, all;
};
template <class F> __device__ __forceinline__ LaneScan scan_lanes(int value, int neutral, F f, ptx::Site site) {
  LaneScan scan = {neutral, value};
#pragma unroll
  for (int mask = 1; mask < 32; mask *= 2) {
    const int other = static_cast<int>(ptx::shuffle_xor(static_cast<unsigned>(scan.all), mask, site));
    if (ptx::lane_index() & mask)
      scan.before = f(scan.before, other);
    scan.all = f(scan.all, other);
  }
  return scan;
}

/// The offsets of kEach neighbouring sequences and of the one after them, each at least the one before it: `most` is
/// the largest before this chunk, and after it the largest of all.
template <int kEach>
__device__ __forceinline__ void ascending_offsets(int (&offsets)[kEach + 1], const unsigned *tensor, int first,
                                                  int count, int total, int &most, ptx::Site site) {
#pragma unroll
  for (int i = 0; i <= kEach; ++i)
    offsets[i] = min(max(static_cast<int>(ptx::element_of(tensor, min(first + i, count), site)), 0), total);
#pragma unroll
  for (int i = 1; i <= kEach; ++i)
    offsets[i] = max(offsets[i], offsets[i - 1]);
  const auto largest = [](int a, int b) { return max(a, b); };
  const auto scan = scan_lanes(offsets[kEach - 1], 0, largest, site);
  const int before = max(most, scan.before);
  most = max(most, scan.all);
#pragma unroll
  for (int i = 0; i <= kEach; ++i)
    offsets[i] = max(offsets[i], before);
}

/// How many tiles of each class there are, or how many before a run's.
struct ClassCounts {
  int of[kTileClasses] = {};

  template <int kTileRows, int kTileKeys, bool kCausal> __device__ __forceinline__ void add(const TileRun &run) {
    int before = 0;
#pragma unroll
    for (int i = 0; i < kTileClasses; ++i) {
      const int upto = i + 1 < kTileClasses ? run.shorter<kTileRows, kCausal>(kTileKeys << i) : run.tiles<kTileRows>();
      of[i] += upto - before;
      before = upto;
    }
  }
};

/// Every kWarps-th tile of the run, of which the first is tile `slot`. before: of earlier runs; after: how many tiles
/// are of longer classes, and of its own.
template <int kTileRows, int kTileKeys, bool kCausal, int kWarps>
__device__ __forceinline__ void put_tiles(const TilePlan &plan, int slot, const TileRun &run, const ClassCounts &before,
                                          const ClassCounts &upto, ptx::Site site) {
  const int tiles = run.tiles<kTileRows>();
  for (int i = ptx::warp_index(); i < tiles && slot + i < plan.slots; i += kWarps) {
    const int row = run.begin + i * kTileRows;
    ptx::st_global_u32(plan.rows + slot + i, static_cast<unsigned>(row), site);
    ptx::st_global(plan.words + 4LL * (slot + i),
                   {static_cast<unsigned>(run.first_key), static_cast<unsigned>(run.keys),
                    static_cast<unsigned>(run.seen + i * kTileRows), static_cast<unsigned>(run.sequence)},
                   site);
    int place = 0, first = 0; // of the class, in the run
#pragma unroll
    for (int c = 0; c < kTileClasses; ++c) {
      const int end = c + 1 < kTileClasses ? run.shorter<kTileRows, kCausal>(kTileKeys << c) : tiles;
      if (i >= first && i < end)
        place = upto.of[c] - 1 - before.of[c] - (i - first);
      first = end;
    }
    if (place < plan.slots)
      ptx::st_global_u32(plan.order + place, static_cast<unsigned>(slot + i), site);
  }
}

/// The runs of kEach neighbouring sequences: of each the rows that it uses, and those of nobody after it; before the
/// first sequence lie rows of nobody, too, and after the last one those after a sequence `count`.
template <int kEach> struct RunsOfLane {
  TileRun first, used[kEach], unused[kEach];

  __device__ __forceinline__ RunsOfLane(const Sequences &sequences, int at, int &most_row, int &most_key,
                                        ptx::Site site) {
    int rows[kEach + 1], keys[kEach + 1];
    ascending_offsets<kEach>(rows, sequences.rows, at, sequences.count, sequences.total_rows, most_row, site);
    ascending_offsets<kEach>(keys, sequences.keys, at, sequences.count, sequences.total_keys, most_key, site);
    const auto length_of = [&](const unsigned *used, bool uses, int sequence, int length) {
      return uses ? min(max(static_cast<int>(ptx::element_of(used, sequence, site)), 0), length) : length;
    };
    first.end = at == 0 ? rows[0] : 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const bool exists = at + i < sequences.count;
      const int length =
          exists ? length_of(sequences.used_rows, sequences.uses_rows, at + i, rows[i + 1] - rows[i]) : 0;
      const int count = exists ? length_of(sequences.used_keys, sequences.uses_keys, at + i, keys[i + 1] - keys[i]) : 0;
      used[i].begin = rows[i];
      used[i].end = unused[i].begin = rows[i] + length;
      unused[i].end = exists ? rows[i + 1] : at + i == sequences.count ? sequences.total_rows : rows[i];
      used[i].first_key = keys[i];
      used[i].keys = count;
      used[i].seen = count - length;
      used[i].sequence = at + i;
    }
  }

  template <class F> __device__ __forceinline__ void each(F f) const {
    f(first);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      f(used[i]);
      f(unused[i]);
    }
  }
};

template <int kTileRows, int kTileKeys, bool kCausal, int kWarps>
__device__ __forceinline__ void plan_rows(const TilePlan &plan, const Sequences &sequences,
                                          ptx::Site site = ptx::Site::here()) {
  constexpr int kEach = 4;
  const auto sum = [](int a, int b) { return a + b; };
  const int first = ptx::lane_index() * kEach;
  ClassCounts upto; // tiles of all classes that are not shorter
  int most_row = 0, most_key = 0;
  for (int chunk = 0; chunk <= sequences.count; chunk += 32 * kEach)
    RunsOfLane<kEach>(sequences, chunk + first, most_row, most_key, site).each([&](const TileRun &run) {
      upto.add<kTileRows, kTileKeys, kCausal>(run);
    });
  int slots = 0;
#pragma unroll
  for (int c = kTileClasses - 1; c >= 0; --c) {
    slots += scan_lanes(upto.of[c], 0, sum, site).all;
    upto.of[c] = slots;
  }
  ClassCounts before;
  int slot = most_row = most_key = 0;
  for (int chunk = 0; chunk <= sequences.count; chunk += 32 * kEach) {
    const RunsOfLane<kEach> runs(sequences, chunk + first, most_row, most_key, site);
    ClassCounts own, next = before;
    runs.each([&](const TileRun &run) { own.add<kTileRows, kTileKeys, kCausal>(run); });
    int own_slot = slot;
#pragma unroll
    for (int c = 0; c < kTileClasses; ++c) {
      const LaneScan scan = scan_lanes(own.of[c], 0, sum, site);
      own_slot += scan.before;
      slot += scan.all;
      next.of[c] += scan.all;
      before.of[c] += scan.before;
    }
    runs.each([&](const TileRun &run) {
      put_tiles<kTileRows, kTileKeys, kCausal, kWarps>(plan, own_slot, run, before, upto, site);
      own_slot += run.tiles<kTileRows>();
      before.add<kTileRows, kTileKeys, kCausal>(run);
    });
    before = next;
  }
  slots = min(slots, plan.slots);
  for (int i = slots + ptx::thread_index(); i <= plan.slots; i += kWarps * 32) { // after the last tile: none has rows
    ptx::st_global_u32(plan.rows + i, static_cast<unsigned>(sequences.total_rows), site);
    if (i < plan.slots)
      ptx::st_global(plan.words + 4LL * i, {0u, 0u, 0u, 0u}, site);
  }
  if (ptx::thread_index() == 0)
    ptx::st_global_u32(plan.count, static_cast<unsigned>(slots), site);
}

} // namespace fagen::device
