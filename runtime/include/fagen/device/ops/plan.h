// fagen: the tiles of sequences that lie one after the other: a launch of its own, before the one that works on them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each tile is up to kTileRows rows of one sequence, or of nobody. Tiles stand in the order of their rows, so that tile
// i has rows rows[i] to rows[i + 1], whatever the offsets hold: those that decrease count as the largest before them,
// and none leads beyond the tensor. Every warp finds all tiles, 128 sequences at a time, and writes its share of each
// sequence's: nobody waits for another.
#pragma once

#include <fagen/device/ptx/global.h>
#include <fagen/device/ptx/shuffle.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/tile/integer.h>

namespace fagen::device {

/// What a launch knows of its sequences: sequence i has rows rows[i] to rows[i + 1] of Q, and keys[i] to keys[i + 1] of K
/// and V. Of these it uses the first used_rows[i] and used_keys[i], where that is asked for.
struct Sequences {
  const unsigned *rows, *keys, *used_rows, *used_keys;
  int count, total_rows, total_keys;
  bool uses_rows, uses_keys;
};

/// What it finds. Of tile order[i], i below *count, words[4 * order[i]] has the first key, how many keys there are, and the
/// number of the last key that the tile's first row sees under a causal mask: its sequence's last row sees the last key.
struct TilePlan {
  unsigned *rows; ///< slots + 1
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

/// The offsets of kEach neighbouring sequences and of the one after them, each at least the one before it: `most` is the
/// largest before this chunk, and after it the largest of all.
template <int kEach>
__device__ __forceinline__ void ascending_offsets(int (&offsets)[kEach + 1], const unsigned *tensor, int first, int count,
                                                  int total, int &most, ptx::Site site) {
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

/// Every kWarps-th tile of rows [begin, end), of which the first is tile `slot`. Row `begin` sees the keys up to number `seen`,
/// each next one a key more.
template <int kTileRows, int kWarps>
__device__ __forceinline__ void put_tiles(const TilePlan &plan, int slot, int begin, int end, int first_key, int keys,
                                          int seen, ptx::Site site) {
  for (int row = begin + ptx::warp_index() * kTileRows, i = slot + ptx::warp_index(); row < end && i < plan.slots;
       row += kWarps * kTileRows, i += kWarps) {
    ptx::st_global_u32(plan.rows + i, static_cast<unsigned>(row), site);
    ptx::st_global(plan.words + 4LL * i,
                   {static_cast<unsigned>(first_key), static_cast<unsigned>(keys),
                    static_cast<unsigned>(seen + (row - begin)), 0u},
                   site);
  }
}

template <int kTileRows, int kWarps>
__device__ __forceinline__ void plan_rows(const TilePlan &plan, const Sequences &sequences,
                                          ptx::Site site = ptx::Site::here()) {
  constexpr int kEach = 4;
  const int count = sequences.count;
  int slots = 0, most_row = 0, most_key = 0;
  for (int chunk = 0; chunk <= count; chunk += 32 * kEach) {
    const int first = chunk + ptx::lane_index() * kEach;
    int rows[kEach + 1], keys[kEach + 1];
    ascending_offsets<kEach>(rows, sequences.rows, first, count, sequences.total_rows, most_row, site);
    ascending_offsets<kEach>(keys, sequences.keys, first, count, sequences.total_keys, most_key, site);
    // Rows of nobody lie before the first sequence, after what each uses, and after the last one, as of a sequence `count`.
    const auto used_of = [&](const unsigned *used, bool uses, int sequence, int length) {
      return uses ? min(max(static_cast<int>(ptx::element_of(used, sequence, site)), 0), length) : length;
    };
    int ends[kEach], used[kEach], seen[kEach], tiles = first == 0 ? ceil_div(rows[0], kTileRows) : 0;
    for (int i = 0; i < kEach; ++i) {
      const bool exists = first + i < count;
      used[i] = exists ? used_of(sequences.used_rows, sequences.uses_rows, first + i, rows[i + 1] - rows[i]) : 0;
      seen[i] = exists ? used_of(sequences.used_keys, sequences.uses_keys, first + i, keys[i + 1] - keys[i]) : 0;
      ends[i] = exists ? rows[i + 1] : first + i == count ? sequences.total_rows : rows[i];
      tiles += ceil_div(used[i], kTileRows) + ceil_div(ends[i] - rows[i] - used[i], kTileRows);
    }
    const auto sum = [](int a, int b) { return a + b; };
    const auto scan = scan_lanes(tiles, 0, sum, site);
    int slot = slots + scan.before;
    slots += scan.all;
    for (int i = 0; i < kEach && first + i <= count; ++i) {
      if (first + i == 0) {
        put_tiles<kTileRows, kWarps>(plan, slot, 0, rows[0], 0, 0, 0, site);
        slot += ceil_div(rows[0], kTileRows);
      }
      const int end = rows[i] + used[i];
      put_tiles<kTileRows, kWarps>(plan, slot, rows[i], end, keys[i], seen[i], seen[i] - used[i], site);
      slot += ceil_div(used[i], kTileRows);
      put_tiles<kTileRows, kWarps>(plan, slot, end, ends[i], 0, 0, 0, site);
      slot += ceil_div(ends[i] - end, kTileRows);
    }
  }
  slots = min(slots, plan.slots);
  for (int i = ptx::thread_index(); i < slots; i += 32 * kWarps)
    ptx::st_global_u32(plan.order + i, static_cast<unsigned>(slots - 1 - i), site);
  if (ptx::thread_index() == 0) {
    ptx::st_global_u32(plan.rows + slots, static_cast<unsigned>(sequences.total_rows), site);
    ptx::st_global_u32(plan.count, static_cast<unsigned>(slots), site);
  }
}

} // namespace fagen::device
