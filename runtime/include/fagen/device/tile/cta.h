// fagen: which part of the problem a CTA works on.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <fagen/device/params.h>
#include <fagen/device/ptx/shared.h>
#include <fagen/device/ptx/threads.h>
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

/// Which query tiles come first; CTAs start in the order of their numbers. kFirstTileFirst: those of one head, then
/// those of the next: CTAs that run together share K and V. kLastTileFirst, where later rows see more keys: the last
/// tiles of some heads, then those before them, so that the short ones fill the gaps at the end.
enum class TileOrder { kFirstTileFirst, kLastTileFirst };

/// Which of several heads, and which of its tiles.
struct HeadTile {
  int head, tile;
};

/// The tile with this number where `together` heads at a time take turns, their last tiles first.
__device__ __forceinline__ HeadTile take_turns(int number, int tiles, int heads, int together) {
  const int first = number / (tiles * together) * together, left = heads - first;
  const int size = left < together ? left : together;
  const int turn = number - first * tiles;
  return {first + turn % size, tiles - 1 - turn / size};
}

/// How many of `heads` take turns, so that K and V of all of them together have no more than kCachedRows rows.
template <int kCachedRows>
__device__ __forceinline__ int heads_in_turn(const AttentionParams &params, int heads, int heads_per_kv) {
  const int cached = kCachedRows / (params.seq_kv > 1 ? params.seq_kv : 1);
  const int wanted = (cached > 1 ? cached : 1) * heads_per_kv;
  return wanted < heads ? wanted : heads;
}

/// So many heads take turns that a square problem's are 512 CTAs, two or more for each SM of the largest GPU, since no
/// gap at the end is then longer than a short tile; and no more, that K and V are still in the L2 for the tiles before
/// the last ones: with 128 rows that is 32 MiB at head dim 128.
template <int kTileRows, TileOrder kOrder = TileOrder::kFirstTileFirst, Rows kRows = Rows::kOfHead>
__device__ __forceinline__ CtaPlace locate_cta(const AttentionParams &params) {
  constexpr int kCtas = 512;
  const int tiles = (row_count<kRows>(params) + kTileRows - 1) / kTileRows;
  const int cta = ptx::recompute(ptx::cta_index());
  const int heads = tile_heads<kRows>(params);
  HeadTile of_all{cta / tiles, cta % tiles};
  if constexpr (kOrder == TileOrder::kLastTileFirst) {
    const int per_kv = kRows == Rows::kOfGroup ? 1 : params.heads_per_kv;
    const int together = heads_in_turn<kCtas * kTileRows>(params, heads * params.batch, per_kv);
    of_all = take_turns(cta, tiles, heads * params.batch, together);
  }
  const int batch = of_all.head / heads, head = of_all.head % heads, row_begin = of_all.tile * kTileRows;
  if constexpr (kRows == Rows::kOfGroup)
    return {batch, head * params.heads_per_kv, head, row_begin};
  else
    return {batch, head, head / params.heads_per_kv, row_begin};
}

/// Where the tile of query rows with this number lies.
template <int kTileRows> __device__ __forceinline__ CtaPlace locate_tile(const AttentionParams &params, int number) {
  const int tiles = (params.seq_q + kTileRows - 1) / kTileRows;
  const int head = number / tiles % params.heads;
  return {number / tiles / params.heads, head, head / params.heads_per_kv, number % tiles * kTileRows};
}

/// How many tiles of query rows a launch has.
template <int kTileRows> __device__ __forceinline__ int tile_count(const AttentionParams &params) {
  return (params.seq_q + kTileRows - 1) / kTileRows * params.heads * params.batch;
}

/// The tile that goes with a ticket where the last rows of heads come first: they see most keys. So many heads take
/// turns that kCachedRows rows of their K and V together stay in L2. Tickets beyond the last tile stay beyond it.
template <int kTileRows, int kCachedRows>
__device__ __forceinline__ int longest_tile_first(const AttentionParams &params, int ticket) {
  const int tiles = (params.seq_q + kTileRows - 1) / kTileRows, heads = params.heads * params.batch;
  if (ticket >= tiles * heads)
    return ticket;
  const int together = heads_in_turn<kCachedRows>(params, heads, params.heads_per_kv);
  const HeadTile of_all = take_turns(ticket, tiles, heads, together);
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
