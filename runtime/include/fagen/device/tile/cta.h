// fagen: which part of the problem a CTA works on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/params.h>
#include <fagen/device/ptx/shared.h>
#include <fagen/device/ptx/threads.h>
#include <fagen/device/tile/integer.h>
#include <fagen/device/tile/rows.h>

namespace fagen::device {

/// The numbers are computed where they are asked for and not kept across the loop: registers are dearer than a few
/// divisions.
struct CtaPlace {
  int batch;
  int head; ///< the first one of its group, where rows are a group's
  int kv_head;
  int row_begin; ///< first query row
};

/// Which query tiles come first; CTAs start in the order of their numbers. Those of one head follow each other: CTAs
/// that run together share K and V. kLastTileFirst, where later rows see more keys: the longest tile of a head comes
/// first, and the last heads take turns, so that the short tiles fill the gaps at the end of the grid.
enum class TileOrder { kFirstTileFirst, kLastTileFirst };

/// Which of several heads, and which of its tiles.
struct HeadTile {
  int head, tile;
};

/// The exponent of the largest power of two that is no more than x, which is positive. From 2^24 on x is rounded to a
/// float first: the exponent may be one more.
__device__ __forceinline__ int floor_log2(unsigned x) {
  return (__builtin_bit_cast(int, static_cast<float>(x)) >> 23) - 127;
}

/// Maps a ticket, counted from the end, to a head and a tile. Heads follow one another, each with its last tile first.
/// The last `in_turns` heads, a multiple of 2^log_together, are interleaved, 2^log_together at a time. Without these it
/// is tile `from_end` of head from_end / tiles.
__device__ __forceinline__ HeadTile take_turns(int from_end, int head, int tiles, int log_together, int in_turns) {
  const int shift = head < in_turns ? log_together : 0;
  const int first = head >> shift << shift, turn = from_end - first * tiles;
  return {first + (turn & ((1 << shift) - 1)), turn >> shift};
}

/// How many heads take turns, as the exponent of a power of two: so many that their K and V have kRows / 2 to kRows
/// rows, but one at least. Of a square problem these are kRows / kTileRows tiles: with a few for
/// each CTA that runs at a time no gap at the end of the grid is longer than a short tile. The others gain nothing by
/// turns, and lose: CTAs of one head that run together share its K and V. Without keys 2 * seq_kv - 1 is the
/// largest number there is: one head does.
template <int kRows> __device__ __forceinline__ int log_heads_in_turn(const AttentionParams &params, int heads) {
  const int wanted = floor_log2(kRows) - floor_log2(2u * params.seq_kv - 1);
  return min(max(wanted, 0), floor_log2(min(heads, 1 << 20)));
}

template <int kTileRows, TileOrder kOrder = TileOrder::kFirstTileFirst, Rows kRows = Rows::kOfHead>
__device__ __forceinline__ CtaPlace locate_cta(const AttentionParams &params, int cta) {
  const int tiles = (row_count<kRows>(params) + kTileRows - 1) / kTileRows;
  const int heads = tile_heads<kRows>(params);
  HeadTile of_all{cta / tiles, cta % tiles};
  if constexpr (kOrder == TileOrder::kLastTileFirst) {
    const int all = heads * params.batch, from_end = tiles * all - 1 - cta; // the hardware runs two CTAs and more an SM
    const int log = log_heads_in_turn<1024 * kTileRows>(params, all);
    of_all = take_turns(from_end, from_end / tiles, tiles, log, 1 << log);
  }
  const int batch = of_all.head / heads, head = of_all.head % heads, row_begin = of_all.tile * kTileRows;
  if constexpr (kRows == Rows::kOfGroup)
    return {batch, head * params.heads_per_kv, head, row_begin};
  else
    return {batch, head, head / params.heads_per_kv, row_begin};
}

template <int kTileRows, TileOrder kOrder = TileOrder::kFirstTileFirst, Rows kRows = Rows::kOfHead>
__device__ __forceinline__ CtaPlace locate_cta(const AttentionParams &params) {
  return locate_cta<kTileRows, kOrder, kRows>(params, ptx::recompute(ptx::cta_index()));
}

/// Tiles of query rows of a head. Where kCluster CTAs work on neighbouring ones together, whole clusters: the last one
/// may have tiles after the last row.
template <int kTileRows, int kCluster = 1> __device__ __forceinline__ int head_tiles(const AttentionParams &params) {
  constexpr int kRows = kTileRows * kCluster;
  return (params.seq_q + kRows - 1) / kRows * kCluster;
}

/// Where the tile of query rows with this number lies. All threads ask before they can begin a tile: no division by
/// what only the launch knows.
template <int kTileRows, int kCluster = 1>
__device__ __forceinline__ CtaPlace locate_tile(const MappedAttentionParams &params, int number) {
  const int tiles = head_tiles<kTileRows, kCluster>(params);
  const int of_all = floor_div(number, params.by_tiles), batch = floor_div(of_all, params.by_heads);
  const int head = of_all - batch * params.heads;
  return {batch, head, floor_div(head, params.by_heads_per_kv), (number - of_all * tiles) * kTileRows};
}

/// How many tiles of query rows a launch has.
template <int kTileRows, int kCluster = 1> __device__ __forceinline__ int tile_count(const AttentionParams &params) {
  return head_tiles<kTileRows, kCluster>(params) * params.heads * params.batch;
}

/// The tile that goes with a ticket where the last rows of heads come first: they see most keys. Tickets beyond the
/// last tile stay beyond it. The last heads, which take turns, have kTurnRows rows of K and V. Heads of kTurnTiles
/// tiles and more all do, with twice as many rows: else many CTAs work on the last long tiles when others find none
/// left. 0: none does.
template <int kTileRows, int kTurnRows, int kTurnTiles = 0>
__device__ __forceinline__ int longest_tile_first(const MappedAttentionParams &params, int ticket) {
  const int tiles = (params.seq_q + kTileRows - 1) / kTileRows, heads = params.heads * params.batch;
  if (ticket >= tiles * heads)
    return ticket;
  const int from_end = tiles * heads - 1 - ticket, head = floor_div(from_end, params.by_tiles);
  int log = log_heads_in_turn<kTurnRows>(params, heads), in_turns = 1 << log;
  if (kTurnTiles != 0 && tiles >= kTurnTiles) {
    log = log_heads_in_turn<2 * kTurnRows>(params, heads);
    in_turns = heads >> log << log;
  }
  const HeadTile of_all = take_turns(from_end, head, tiles, log, in_turns);
  return of_all.head * tiles + of_all.tile;
}

/// The tile that goes with a ticket where of each run of `tiles` the last comes first. Tickets beyond the last tile
/// stay beyond it. by_tiles: their reciprocal, or their number.
template <class By> __device__ __forceinline__ int last_tile_first(int ticket, int tiles, const By &by_tiles) {
  return ticket + tiles - 1 - 2 * (ticket - floor_div(ticket, by_tiles) * tiles);
}

/// As log_heads_in_turn, of runs of tiles with `rows` rows of K and V each.
template <int kRows> __device__ __forceinline__ int log_runs_in_turn(int rows, int runs) {
  const int wanted = floor_log2(kRows) - floor_log2(2u * rows - 1);
  return min(max(wanted, 0), floor_log2(min(runs, 1 << 20)));
}

/// As longest_tile_first of attention's tiles, of `runs` runs in the place of heads.
template <int kTurnRows, int kTurnTiles = 0, class By>
__device__ __forceinline__ int longest_tile_first(int ticket, int tiles, const By &by_tiles, int runs, int rows) {
  if (ticket >= tiles * runs)
    return ticket;
  const int from_end = tiles * runs - 1 - ticket;
  const bool all_turn = kTurnTiles != 0 && tiles >= kTurnTiles;
  const int log = all_turn ? log_runs_in_turn<2 * kTurnRows>(rows, runs) : log_runs_in_turn<kTurnRows>(rows, runs);
  const int run = floor_div(from_end, by_tiles);
  const HeadTile of_all = take_turns(from_end, run, tiles, log, (all_turn ? runs >> log : 1) << log);
  return of_all.head * tiles + of_all.tile;
}

/// First row of a head of Q, K, V or O, [batch, heads, rows, columns].
template <class T>
__device__ __forceinline__ const T *head_rows(const void *tensor, const long long (&stride)[3], int batch, int head) {
  return static_cast<const T *>(tensor) + batch * stride[0] + head * stride[1];
}
template <class T>
__device__ __forceinline__ T *head_rows(void *tensor, const long long (&stride)[3], int batch, int head) {
  return static_cast<T *>(tensor) + batch * stride[0] + head * stride[1];
}

/// Row 0 of a head's log-sum-exp [batch, heads, rows], or null when the caller wants none.
__device__ __forceinline__ float *head_lse(const AttentionParams &params, int batch, int head) {
  return params.lse == nullptr ? nullptr : params.lse + batch * params.lse_stride[0] + head * params.lse_stride[1];
}

} // namespace fagen::device
